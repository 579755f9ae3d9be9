/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What /proc says of another process. A number may have been given to another process by the time
 * of the call: only that of a child that is not reaped yet is certain.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Longest path of a cgroup that is looked at, with its NUL. */
#define PROCFS_CGROUP_SIZE 4096

struct procfs_stat {
    pid_t parent, group;
    bool exiting; /* the main thread is on its way out, or is a zombie */
};

/* 0, -ESRCH when there is no such process, another -errno when it cannot be looked at. */
int procfs_stat(pid_t pid, struct procfs_stat *ret);

/* The place in the unified hierarchy, "/a/b", as the calling process sees it; pid 0 = its own. 0,
 * -ENOENT without such a hierarchy, -ESRCH, another -errno. */
int procfs_cgroup(pid_t pid, char path[PROCFS_CGROUP_SIZE]);

/* Whether `path` is the cgroup `name` beside that of `own`, or lies below it. */
bool procfs_is_within(const char *own, const char *name, const char *path);
