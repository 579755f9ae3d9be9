/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The rights of a process, beyond its user and limits. The supervisor compiles it once per reload;
 * the new process applies it between clone and exec.
 *
 * The functions below run in the new process. They make system calls and nothing else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* In bytes: the kernel's limit, without what sandbox_apply() adds. */
#define SANDBOX_FILTER_SIZE_MAX ((size_t)(4096 - 16) * 8)

/* Calls with these numbers belong to the x32 architecture, which has numbers of its own for the
 * same calls, but for -1, which a tracer sets. No other machine has as many calls. */
#define SANDBOX_X32_CALLS 0x40000000u

/* A program for seccomp(2). */
struct sandbox_filter {
    void *code; /* struct sock_filter, not necessarily aligned */
    size_t size;
};

struct sandbox {
    uint64_t bounding, ambient; /* bit N = capability N; `ambient` is part of `bounding` */
    bool no_new_privileges;
    bool strict;     /* the process does not start if something cannot be enforced in full */
    uint64_t scopes; /* LANDLOCK_SCOPE_ABSTRACT_SOCKETS … */
    bool set_umask;
    mode_t umask;
    struct sandbox_filter filter; /* size 0 = none */
};

/* By which means the keys about files are enforced. */
enum sandbox_means {
    SANDBOX_BY_NOTHING, /* there are no such keys */
    SANDBOX_BY_MOUNTS,
    SANDBOX_NOT_AT_ALL, /* mounts are not permitted */
};

/* Namespaces of processes and IPC. */
enum sandbox_namespaces {
    SANDBOX_SHARES_IPC = 1, /* with the supervisor: it may not have a namespace, as it should */
    SANDBOX_OWN_IPC = 2,
    SANDBOX_OWN_PIDS = 4,
};

/* The restrictions in force when the program is executed, as the new process has found them. */
struct sandbox_state {
    uint64_t scopes;
    bool no_new_privileges;
    bool bounded, not_bounded; /* the set of capabilities is limited; it could not be */
    bool has_network;          /* one that is not the supervisor's */
    uint8_t files;             /* enum sandbox_means */
    bool filtered;             /* system calls */
    uint8_t namespaces;        /* enum sandbox_namespaces */
};

/* Whether this process has CAP_SYS_ADMIN. */
bool sandbox_may_mount(void);

/* Removes all but `bounding` from the bounding set. Returns 0 or -errno. */
int sandbox_limit_capabilities(uint64_t bounding);

/* Makes `ambient` the inheritable and the ambient set and, if `only` these are to be left, the
 * permitted and the effective set. Returns 0 or -errno. */
int sandbox_set_capabilities(uint64_t ambient, bool only);

/* Whether the process must be unable to gain privileges to load a filter, and is made so. */
bool sandbox_gives_up_privileges(const struct sandbox *sandbox);

/*
 * Sets the file mode mask and loads the filter. From then on, only the exec remains to be done.
 * Where the filter says to kill (or to log), the kernel does so if `socket` is -1 or if somebody
 * else's filter has a listener already. Otherwise a listener for seccomp_unotify(2) is sent to
 * `socket`, with a byte, and the call waits for what the receiver does. It fails with ENOSYS once
 * no process has the listener. Returns 0 or -errno.
 */
int sandbox_apply(const struct sandbox *sandbox, int socket);
