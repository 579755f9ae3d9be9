/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Scopes of Landlock (landlock(7)) by its system calls: Debian 12 has no functions for it. The
 * function makes system calls and nothing else, so a process that shares its memory with another
 * may call it.
 */

#include <stdint.h>

/* Things that processes cannot reach outside their own domain; since Linux 6.12. */
#define LANDLOCK_SCOPE_ABSTRACT_SOCKETS (UINT64_C(1) << 0)
#define LANDLOCK_SCOPE_SIGNALS          (UINT64_C(1) << 1)

enum {
    _LANDLOCK_E_SUCCESS,
    LANDLOCK_E_UNKNOWN, /* this kernel has no Landlock, or an older one */
};

/* Permanently confines this thread and its future children to a domain with these scopes. The
 * process must be unable to gain privileges (no_new_privs), or have CAP_SYS_ADMIN. Returns 0,
 * LANDLOCK_E_UNKNOWN or -errno. */
int landlock_confine(uint64_t scopes);
