/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The process in a slot: started by the keeper, watched through its pidfd, its output captured,
 * signalled as a whole.
 *
 *     requested ── cloned ── (runs its program) ── ended ── buried
 *
 * Starting is asynchronous. A signal that is meant for a process which does not exist yet is sent
 * as soon as it does.
 */

#include "supervisor/config/config.h"
#include "supervisor/keeper/spawn.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/loop/work-queue.h"
#include "supervisor/process/capture.h"
#include "supervisor/process/cgroup.h"
#include "supervisor/process/spawner.h"
#include <stdbool.h>
#include <sys/types.h>

struct context;

struct process {
    struct context *context;
    struct spawner_client client;
    pid_t pid; /* 0 = none, or not known yet */
    int pidfd;
    int report_fd;        /* where it reports that it cannot be started; -1 = it runs */
    int early_signal;     /* to be sent as soon as there is a process; 0 = none */
    struct cgroup cgroup; /* CGROUP_NULL = process group only */
    struct loop_watch exit_watch, report_watch;
    bool ended;                /* it is dead, and waits for its burial */
    struct spawn_exit exit;    /* how it ended */
    struct spawn_report error; /* why it could not be started; error 0 = it could */
    struct timer overdue;      /* it is dead, and not reaped */
    unsigned n_overdue;        /* how often that timer has fired */
    struct task reap;
    struct capture output;      /* stdout and stderr; its tail outlives the process */
    const char *group, *worker; /* for the fields of its output; borrowed from the slot */
    const struct process_handler *handler;
};

struct process_handler {
    /* It executes its program. */
    void (*started)(struct process *process);
    /* It could not be started, and is gone. Released already. */
    void (*failed)(struct process *process, const char *step, int error);
    /* It is dead: nothing more is to be given to it. */
    void (*ended)(struct process *process);
    /* Its burial: called once, in its turn among all that died. Call process_release() there. */
    void (*exited)(struct process *process, const struct spawn_exit *how);
};

struct process_options {
    const struct config_group *config;
    unsigned slot;
    bool twin;           /* another one runs for the same slot */
    const gid_t *groups; /* supplementary ones of User= */
    size_t n_groups;
    const struct spawn_fd *fds; /* beside 0, 1, 2 */
    size_t n_fds;
    const char *const
        *user_environment;          /* where the configuration says nothing else; NULL = none */
    const char *const *environment; /* beside the configured one; NULL-terminated */
};

/* `group` and `worker` are its names; both must outlive the process. */
void process_init(struct process *process, struct context *context, const char *group,
                  const char *worker);
/* Not while it runs. */
void process_deinit(struct process *process);

/*
 * Requests it. The handler's functions are called from the loop: `failed`, or `started` and then
 * `ended` and `exited`; `started` is left out if it ends before that is known. 0 or -errno with
 * `*ret_step` naming what failed; nothing is left then.
 */
int process_start(struct process *process, const struct process_options *options,
                  const struct process_handler *handler, const char **ret_step);

/*
 * It has shown that it runs: calls `started` if that was not known yet. False if it was faster than
 * the keeper's word that there is a process: then `started` follows.
 */
bool process_confirm(struct process *process);

/*
 * Whether that process is one of its own: itself, in its cgroup, or without cgroups one that it
 * started. False if that cannot be found out, as of one that is gone. process-kin.c
 */
bool process_has(const struct process *process, pid_t pid);
/* Whether it is on its way out already; true if that cannot be found out. */
bool process_is_exiting(const struct process *process);

/* To the process alone. */
void process_signal(struct process *process, int signal);
/* SIGKILL to its whole cgroup, else its process group. */
void process_kill_all(struct process *process);

/* Whether the kernel's OOM killer struck in its cgroup since the last call; false without cgroups.
 */
bool process_take_oom_kill(struct process *process);

/* What it wrote from `since` on, a mark of capture_position(); see capture_tail(). Also after its
 * end, until the next start. */
size_t process_last_output(const struct process *process, size_t since, char *buffer, size_t size);

/* After `exited`: kills what is left in its cgroup, takes the rest of its output, removes the
 * cgroup. */
void process_release(struct process *process);
