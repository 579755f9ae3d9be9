/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Landlock (landlock(7)) by its system calls: Debian 12 has neither functions for it nor all the
 * numbers. The functions make system calls and nothing else, so a process that shares its memory
 * with another may call them.
 */

#include <stdint.h>

/* Rights to files and directories. */
#define LANDLOCK_EXECUTE     (UINT64_C(1) << 0)
#define LANDLOCK_WRITE_FILE  (UINT64_C(1) << 1)
#define LANDLOCK_READ_FILE   (UINT64_C(1) << 2)
#define LANDLOCK_READ_DIR    (UINT64_C(1) << 3)
#define LANDLOCK_REMOVE_DIR  (UINT64_C(1) << 4)
#define LANDLOCK_REMOVE_FILE (UINT64_C(1) << 5)
#define LANDLOCK_MAKE_CHAR   (UINT64_C(1) << 6)
#define LANDLOCK_MAKE_DIR    (UINT64_C(1) << 7)
#define LANDLOCK_MAKE_REG    (UINT64_C(1) << 8)
#define LANDLOCK_MAKE_SOCK   (UINT64_C(1) << 9)
#define LANDLOCK_MAKE_FIFO   (UINT64_C(1) << 10)
#define LANDLOCK_MAKE_BLOCK  (UINT64_C(1) << 11)
#define LANDLOCK_MAKE_SYM    (UINT64_C(1) << 12)
#define LANDLOCK_REFER       (UINT64_C(1) << 13) /* ABI 2, Linux 5.19 */
#define LANDLOCK_TRUNCATE    (UINT64_C(1) << 14) /* ABI 3, Linux 6.2 */

#define LANDLOCK_READ (LANDLOCK_EXECUTE | LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define LANDLOCK_WRITE                                                                             \
    (LANDLOCK_WRITE_FILE | LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_CHAR |       \
     LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SOCK | LANDLOCK_MAKE_FIFO |             \
     LANDLOCK_MAKE_BLOCK | LANDLOCK_MAKE_SYM | LANDLOCK_REFER | LANDLOCK_TRUNCATE)

/* Things that processes cannot reach outside their own domain. */
#define LANDLOCK_SCOPE_ABSTRACT_SOCKETS (UINT64_C(1) << 0) /* ABI 6, Linux 6.12 */
#define LANDLOCK_SCOPE_SIGNALS          (UINT64_C(1) << 1) /* ABI 6 */

#define LANDLOCK_ABI_FILES  2 /* the first with which files can be moved between directories */
#define LANDLOCK_ABI_SCOPES 6

/* Returns the version of the kernel's interface; 0 = there is no Landlock. */
int landlock_abi(void);

/* Makes a set of rules that forbids these rights, as far as the kernel knows them, wherever no rule
 * allows them. Returns a descriptor, close-on-exec and owned by the caller, or -errno. */
int landlock_new(int abi, uint64_t rights, uint64_t scopes);

/* Allows some of the rights that the set forbids, at `fd` (O_PATH suffices) and below. Rights that
 * make no sense there are ignored. Returns 0 or -errno. */
int landlock_allow(int rules, int abi, uint64_t rights, int fd);

/* Permanently confines this thread and its future children. It must be unable to gain privileges
 * (no_new_privs), or have CAP_SYS_ADMIN. Returns 0 or -errno. */
int landlock_confine(int rules);
