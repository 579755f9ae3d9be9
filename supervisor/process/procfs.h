/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads /proc about other processes. A pid may have been reused by the time of the call; only
 * that of an unreaped child is certain. */

#include <stdbool.h>
#include <sys/types.h>

/* Longest supported cgroup path, with its NUL. */
#define PROCFS_CGROUP_SIZE 4096

struct procfs_stat {
    pid_t parent, group, session;
    unsigned long long started; /* clock ticks since the boot */
    bool exiting;               /* the main thread is exiting, or a zombie */
};

/* Returns 0, -ESRCH without such a process, or -errno. */
int procfs_stat(pid_t pid, struct procfs_stat *ret);

/* Returns whether a process is traced: true if that is unknown, false if there is no such process.
 */
bool procfs_is_traced(pid_t pid);

/* Returns the effective user, or (uid_t)-1 if it is unknown. */
uid_t procfs_user(pid_t pid);

struct procfs_signals {
    pid_t process; /* of the thread */
    pid_t inner;   /* the same, as its own PID namespace numbers it */
    /* The signal ends the process: it is not blocked, ignored or caught, no other thread can take
     * it, no tracer can withhold it, and it is not process 1 of a PID namespace. */
    bool ends;
};

/* Reads what a signal does to the process of a thread. Returns 0, -ESRCH or -errno. */
int procfs_signals(pid_t thread, int signal, struct procfs_signals *ret);

/* Reads the place in the unified hierarchy, "/a/b", as the calling process sees it; pid 0 = its
 * own. Returns 0, -ENOENT without such a hierarchy, -ESRCH, or -errno. */
int procfs_cgroup(pid_t pid, char path[PROCFS_CGROUP_SIZE]);

/* Returns whether `path` is the sibling `name` of the cgroup `own`, or lies below it. */
bool procfs_is_within(const char *own, const char *name, const char *path);
