/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Starts a process: clone3 with a pidfd, directly into its cgroup, in a copy of the keeper's
 * memory. The new process leaves the terminal, applies descriptors, OOM score, nice, file system,
 * rlimits, user, capabilities, directory and sandbox, and executes its program. It inherits only
 * what is listed.
 *
 * spawn() returns as soon as the process exists, so a slow file system delays only the new process.
 * A pipe reports whether the program was executed.
 */

#include "supervisor/keeper/sandbox-files.h"
#include "supervisor/keeper/sandbox-network.h"
#include "supervisor/keeper/sandbox.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define SPAWN_FDS_MAX     16
#define SPAWN_RLIMITS_MAX 8
#define SPAWN_GROUPS_MAX  4096

struct spawn_fd {
    int fd;     /* in this process; duplicates are allowed */
    int number; /* in the new process; unique */
};

struct spawn_rlimit {
    int resource;
    struct rlimit limit;
};

struct spawn_options {
    /* NULL, or called in the new process: sets all members but report_fd, cgroup_fd and
     * private_pids. Returns 0 or -errno. */
    int (*complete)(void);
    char *const *argv; /* [0] is the path of the program */
    char *const *environment;
    const char *working_directory; /* NULL = "/" */
    const struct spawn_fd *fds;    /* 0, 1 and 2 are /dev/null unless listed */
    size_t n_fds;
    bool pipe_output; /* 1 is a socket with a pump behind it (pump.h): the new process makes a pipe,
                         sends its read end there, and 1 and 2 become the write end */
    uint32_t output_owner; /* with pipe_output: a number of its group */
    const struct spawn_rlimit *rlimits;
    size_t n_rlimits;
    int report_fd; /* write end of a close-on-exec pipe, see struct spawn_report; or a
                      SOCK_SEQPACKET socket, which also gets the mount namespace of a process with
                      `files`, beside its first report, and the listener of the filter
                      (sandbox_apply()) */
    int cgroup_fd; /* -1 = the caller's cgroup */
    int gate_fd;   /* before anything else, the process waits until this is readable, for a moment
                      at most; 0 = it does not */
    bool set_user; /* also drops all capabilities and sets no_new_privs, unless `sandbox` */
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* supplementary */
    size_t n_groups;
    const struct sandbox *sandbox;         /* NULL = none */
    const struct sandbox_files *files;     /* NULL = sees all there is */
    const struct sandbox_network *network; /* NULL = that of the parent */
    bool private_pids; /* it is process 1 of a PID namespace, and all in that end with it; `files`
                          has a SANDBOX_PROC */
    bool private_ipc;  /* an IPC namespace of its own, if that is permitted */
    bool set_nice;
    int nice;
    bool set_oom_score_adjust;
    int oom_score_adjust;
};

/* Returns whether a cgroup or a PID namespace ends the descendants of the process. Otherwise it
 * leads a session. */
static inline bool spawn_is_contained(const struct spawn_options *options)
{
    return options->cgroup_fd >= 0 || options->private_pids;
}

/* The steps of a new process before its program runs. */
enum spawn_step {
    SPAWN_CLONE, /* in the parent */
    SPAWN_PIDS,
    SPAWN_TERMINAL,
    SPAWN_CGROUP,
    SPAWN_OOM_SCORE,
    SPAWN_NICE,
    SPAWN_DEV_NULL,
    SPAWN_NETWORK,
    SPAWN_IPC,
    SPAWN_DESCRIPTORS,
    SPAWN_FILES,
    SPAWN_RLIMIT,
    SPAWN_CAPABILITIES,
    SPAWN_GROUPS,
    SPAWN_GID,
    SPAWN_UID,
    SPAWN_PARENT_DEATH,
    SPAWN_CHDIR,
    SPAWN_LANDLOCK,
    SPAWN_SANDBOX,
    SPAWN_EXEC,
    SPAWN_TEMPLATE,     /* in the template that was to fork it */
    SPAWN_STRICT_FILES, /* from here on: Strict=yes, and something cannot be enforced */
    SPAWN_STRICT_CAPABILITIES,
    SPAWN_STRICT_SCOPES,
    SPAWN_STRICT_IPC,
    SPAWN_STRICT_PIDS,
    SPAWN_STRICT_NETWORK,
    _SPAWN_N_STEPS,
};

/* Returns whether another try would also fail unless somebody changes something. */
static inline bool spawn_step_is_final(enum spawn_step step)
{
    return step >= SPAWN_STRICT_FILES;
}

/* Returns "clone", "chdir" …; "unknown" beyond the last step. Static. */
const char *spawn_step_to_string(enum spawn_step step);

/* Written to report_fd by a new process that fails; it then exits with 127. A process with a
 * sandbox or a user first writes one without error, which says what confines it. End of file
 * without a failure means that the program runs, or that the process was killed before. */
struct spawn_report {
    int error; /* -errno; 0 = `state` counts, else `path` */
    enum spawn_step step;
    union {
        struct sandbox_state state;
        uint32_t path; /* which of `files->paths` it was, from 1; 0 = none of them */
    };
};

struct spawn_result {
    pid_t pid;
    int pidfd; /* close-on-exec, the caller's */
};

/* Returns 0, or -errno if there is no process. The caller keeps all descriptors of `options`. */
int spawn(const struct spawn_options *options, struct spawn_result *ret);

/* Gives every ignored signal its default disposition, because exec preserves "ignored". Call it
 * before the first spawn(). */
void spawn_reset_ignored_signals(void);

/* The resources that a process has used. */
struct spawn_usage {
    struct timeval user, system;
    long max_rss; /* KiB */
};

/* How a process ended. */
struct spawn_exit {
    bool unknown; /* the process ended while traced by another, which hides how; no other member is
                     set */
    bool signalled;
    int code; /* exit status or signal */
    bool core_dumped;
    struct spawn_usage usage;
};

/*
 * Finds a child that has ended, without reaping it. Returns its pid, 0 if there is none, or -errno.
 */
pid_t spawn_find_ended(struct spawn_exit *ret);
/* Returns whether the process is a child that is not reaped. */
bool spawn_is_child(pid_t pid);
/* Reaps this child. Returns 0, -EAGAIN if it still runs, or -errno. */
int spawn_reap(pid_t pid, struct spawn_exit *ret);
