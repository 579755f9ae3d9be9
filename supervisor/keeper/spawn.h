/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Starts one process: clone3 with a pidfd, straight into its cgroup where there is one, in a copy
 * of the keeper's memory. The new process then leaves the terminal and takes rlimits, nice, OOM
 * score, user, capabilities, directory and descriptors, and executes its program. It inherits
 * nothing but what is listed.
 *
 * spawn() returns as soon as the process exists. A slow file system therefore delays nobody but the
 * new process itself; whether it got as far as its program is reported through a pipe.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define SPAWN_FDS_MAX     16
#define SPAWN_RLIMITS_MAX 8
#define SPAWN_GROUPS_MAX  4096

struct spawn_fd {
    int fd;     /* in this process; may be listed more than once */
    int number; /* in the new one; each number once */
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
    int report_fd; /* write end of a close-on-exec pipe, see struct spawn_report */
    int cgroup_fd; /* -1 = the caller's cgroup */
    bool set_user; /* also takes all capabilities away, and the way to get new ones */
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* supplementary */
    size_t n_groups;
    bool set_nice;
    int nice;
    bool set_oom_score_adjust;
    int oom_score_adjust;
};

/* What a new process does before it executes its program. */
enum spawn_step {
    SPAWN_CLONE, /* in the caller */
    SPAWN_TERMINAL,
    SPAWN_CGROUP,
    SPAWN_OOM_SCORE,
    SPAWN_NICE,
    SPAWN_DEV_NULL,
    SPAWN_DESCRIPTORS,
    SPAWN_RLIMIT,
    SPAWN_CAPABILITIES,
    SPAWN_GROUPS,
    SPAWN_GID,
    SPAWN_UID,
    SPAWN_PARENT_DEATH,
    SPAWN_CHDIR,
    SPAWN_EXEC,
    _SPAWN_N_STEPS,
};

/* "clone", "chdir" …; "unknown" beyond the last step. Static. */
const char *spawn_step_to_string(enum spawn_step step);

/*
 * What the pipe carries when the new process gives up; then it exits with 127. The end of file
 * without a report means that the program runs, or that the process was killed before.
 */
struct spawn_report {
    int error; /* -errno */
    enum spawn_step step;
};

struct spawn_result {
    pid_t pid;
    int pidfd; /* close-on-exec; the caller's */
};

/* 0, or -errno: no process was made. The caller keeps all descriptors of `options`. */
int spawn(const struct spawn_options *options, struct spawn_result *ret);

/* Gives every signal that is ignored its default disposition: exec would hand "ignored" on. To be
 * called before the first spawn(). */
void spawn_heed_signals(void);

/* How a process ended. */
struct spawn_exit {
    bool unknown; /* it ended, but another process traces it and hides how; nothing else is set */
    bool signalled;
    int code; /* exit status, or the signal */
    bool core_dumped;
    struct rusage usage;
};

/* Finds a child that has ended, without reaping it. Its pid, 0 if there is none, or -errno. */
pid_t spawn_find_ended(struct spawn_exit *ret);
/* Reaps this child. 0, -EAGAIN if it still runs, or -errno. */
int spawn_reap(pid_t pid, struct spawn_exit *ret);
