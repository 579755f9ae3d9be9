/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Starts one process: clone3 with a pidfd, in the manner of vfork (but who stops the child does not
 * stop us), straight into its cgroup where there is one; then own session-less process group,
 * default signal dispositions, empty mask, rlimits, nice, OOM score, user, directory, descriptors,
 * parent-death signal, exec. Nothing is inherited but what is listed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#define SPAWN_FDS_MAX 16

struct spawn_fd {
    int fd;     /* in the supervisor; may be listed more than once */
    int number; /* in the child; each number once */
};

struct spawn_rlimit {
    int resource;
    struct rlimit limit;
};

struct spawn_options {
    char *const *argv; /* [0] = path of the program */
    char *const *environment;
    const char *working_directory; /* NULL = "/" */
    const struct spawn_fd *fds;    /* 0, 1 and 2 are /dev/null unless among them */
    size_t n_fds;
    const struct spawn_rlimit *rlimits;
    size_t n_rlimits;
    int cgroup_fd; /* -1 = stay in the supervisor's */
    bool set_user;
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* supplementary */
    size_t n_groups;
    bool set_nice;
    int nice;
    bool set_oom_score_adjust;
    int oom_score_adjust;
};

/*
 * Before the supervisor gives up being dumpable: keeps what it takes to set the OOM score of
 * workers without privileges. Without it, or if it fails (-errno), such a spawn fails with -EACCES.
 */
int spawn_prepare(void);

struct spawn_result {
    pid_t pid;
    int pidfd; /* close-on-exec; the caller's */
};

/*
 * 0 when exec succeeded; -errno otherwise, with `*ret_step` naming what failed in the child
 * ("exec", "chdir", "setuid" …; static) or "clone"; -EAGAIN for one that somebody stopped again and
 * again before exec. No zombie is left behind either way.
 */
int spawn(const struct spawn_options *options, struct spawn_result *ret, const char **ret_step);

/* How a process ended. */
struct spawn_exit {
    bool signalled;
    int code; /* exit status, or the signal */
    bool core_dumped;
    struct rusage usage;
};

/* Reaps what the pidfd says has ended. 0, -EAGAIN if it still runs, or -errno. */
int spawn_reap(int pidfd, struct spawn_exit *ret);
