/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A worker's process: the keeper starts it, a pidfd reports its end, its output is captured, and it
 * is killed with all its descendants.
 *
 *     requested ── cloned ── (runs its program) ── ended ── reaped
 *
 * Starting is asynchronous. A signal for a process that does not exist yet is sent later.
 */

#include "shared/protocol/job-id.h"
#include "supervisor/config/config.h"
#include "supervisor/config/sandbox/call-set.h"
#include "supervisor/keeper/spawn.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/loop/work-queue.h"
#include "supervisor/process/call-listener.h"
#include "supervisor/process/capture.h"
#include "supervisor/process/cgroup.h"
#include "supervisor/process/holding.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/process/spawner.h"
#include "supervisor/process/survivors.h"
#include "supervisor/process/tracer.h"
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct event_bus;
struct journal;
struct limited_log;
struct output_log;
struct watch;

/* Shared by all processes. */
struct process_context {
    struct loop *loop;
    struct spawner spawner;
    struct held_table held; /* filled in by held_collect(), at the start */
    usec_t flush_by;        /* until when process_context_flush() waits */
    struct kept_states kept;
    struct spawner_client kept_client; /* of kept_holding */
    struct holding kept_holding;
    struct work_queue reaps;   /* receives output lines */
    struct work_queue outputs; /* reads output */
    struct event_bus *events;
    struct limited_log *log;                    /* NULL = output is not limited */
    struct cgroup_tree *cgroups;                /* NULL = process groups only */
    struct journal *journal;                    /* where output goes; NULL = standard error */
    const char *socket_variable;                /* "TROUPE_SOCKET=PATH", of services; NULL = none */
    char main_variable[SURVIVORS_VARIABLE_MAX]; /* in the environment of all workers */
    struct tracer tracer;
    struct rlimit nofile; /* given to processes whose group sets none; 0 = the present one */
};

/* Takes over `channel`, to the keeper, even on error; -1 = none: every start fails. The caller
 * sets the other members. Returns 0 or -errno. */
int process_context_init(struct process_context *context, struct loop *loop, int channel);
void process_context_deinit(struct process_context *context); /* harmless on a zeroed struct */

/* Ends this process after the keeper's death: kills all processes and their descendants, and
 * removes their cgroups. It does nothing else: another trouped may already have been started, and
 * an orderly end could remove its control socket. */
_Noreturn void process_context_end_with_keeper(struct process_context *context);

/* Takes over the kept states of the last supervisor, or begins without any, after held_collect().
 * Returns 0 or -errno. */
int process_context_adopt(struct process_context *context);
/* Waits until the keeper has read all messages. All calls together wait for a limited time. Returns
 * whether it has. */
bool process_context_flush(struct process_context *context);
/* Ends the processes of the last supervisor that were not adopted. Called once, before the first
 * start of a process. */
void process_context_settle(struct process_context *context);

/* Whose output it is. The strings and the log outlive the process. */
struct process_subject {
    const char *group, *worker;
    const char *key;        /* "" = none */
    struct output_log *log; /* keeps the lines of jobs; NULL = nothing does */
    struct call_set *calls; /* records the system calls of SystemCallLog=; NULL = nothing does */
};

#define PROCESS_OOM_MAX 160

/* Details of how a process was killed. */
struct process_kill {
    char oom[PROCESS_OOM_MAX];       /* whose limit it was; of process_take_oom_kill() */
    struct forbidden_call forbidden; /* the last one; of the worker itself if it has made one */
};

struct process {
    struct process_context *context;
    struct process_subject subject;
    struct spawner_client client;
    struct process *mate; /* the other process in its cgroup: a template, or the worker beside one;
                             NULL = there is none. Set by the owner. */
    bool is_template;     /* its end ends no other process */
    usec_t busy_since;    /* since when a start waits for what is left in the cgroup; 0 = none */
    bool cgroup_killed;   /* nothing can be started in its cgroup any more */
    bool forking;         /* a template was asked for it; `report_fd` is the gate */
    bool forked;          /* by the template, whose filter it has */
    struct holding holding; /* what the keeper holds for the next supervisor */
    pid_t pid;              /* 0 = none, or not known yet */
    int pidfd;
    int report_fd;         /* where the child reports a failed start; -1 = it runs */
    struct timer report;   /* armed until `report_fd` is watched */
    bool report_is_socket; /* which also brings descriptors */
    bool confined;         /* `state` is what the new process has reported */
    struct sandbox_state state;
    int mounts_fd;        /* its mount namespace, or -1. Held, since otherwise the kernel takes it
                             down before it reports the death. Not kept for the next supervisor. */
    int early_signal;     /* to send once there is a process; 0 = none */
    struct cgroup cgroup; /* CGROUP_NULL = process group only */
    struct loop_watch exit_watch, report_watch;
    bool ended;                 /* dead, `exited` not called yet */
    struct spawn_exit exit;     /* how it ended */
    struct spawn_report error;  /* why it could not be started; error 0 = it could */
    struct process_kill *kill;  /* NULL = nothing, or out of memory */
    struct call_listener calls; /* of forbidden system calls; none without filters */
    struct call_set logged;     /* calls that are made and recorded */
    struct process_rest *rest;  /* the others of process_signal_all(), owned; NULL = none */
    struct watch *watch;        /* for crashes (watch.h); NULL = nothing does */
    const char *watch_missing;  /* why there is none, static; NULL = none is wanted */
    struct timer overdue;       /* armed while it is dead and not reaped */
    unsigned n_overdue;         /* how often `overdue` has fired */
    struct task reap;
    struct capture output; /* stdout and stderr; its tail outlives the process */
    bool level_prefix;     /* of SyslogLevelPrefix= */
    bool has_pump;         /* output passes through another process (keeper/pump.h) */
    bool awaits_output;    /* reaped, and the pump still has output */
    const struct process_handler *handler;
};

struct process_job {
    char id[PROTOCOL_ID_TEXT];
    usec_t accepted_at; /* realtime */
};

struct process_handler {
    /* The process executes its program. */
    void (*started)(struct process *process);
    /* The process could not be started. Nothing is left of it. */
    void (*failed)(struct process *process, const struct spawn_report *report);
    /* The process is dead. */
    void (*ended)(struct process *process);
    /* The process is reaped. Called once, from a work queue, so that many deaths at a time do
     * not block the loop. Calls process_release(). */
    void (*exited)(struct process *process);
    /* Called before exited(). Returns false to be called again after process_resume_reap(): some of
     * what the process has sent is still being received. NULL = nothing is. */
    bool (*drained)(struct process *process);
    /* Fills in the job that the process works on. Returns whether there is one. Called for each
     * line of output, which belongs to that job. The callback itself may be NULL. */
    bool (*job)(struct process *process, struct process_job *ret);
};

struct process_options {
    const struct config_group *config;
    unsigned slot;
    bool twin;                  /* another process of the same slot runs */
    const struct spawn_fd *fds; /* beside 0, 1, 2 */
    size_t n_fds;
    const char *const *environment; /* overrides the configuration; NULL-terminated */
    int template_fd; /* the socket of `mate`, a template of the same configuration that is to fork
                        the process; 0 = the keeper starts it */
};

/* `memory`: where the output is kept; NULL = nowhere. The owner may set `mate` afterwards. */
void process_init(struct process *process, struct process_context *context,
                  const struct process_subject *subject, struct capture_memory *memory);
/* Takes over the settings for its output. Call it after process_init(), and after a change. */
void process_take_config(struct process *process, const struct config_group *config);
/* Kills the process if there is one, and forgets it: the handler is not called. */
void process_abandon(struct process *process);
/* Not while the process runs. */
void process_deinit(struct process *process);

/*
 * Requests a process (process-start.c). Later the loop calls the handler: `failed`, or `started`
 * and `ended` in either order, then `exited`. `ended` may also precede `failed`. Returns 0, or
 * -errno with `*ret_step` = what failed; then nothing is left and the handler is not called.
 */
int process_start(struct process *process, const struct process_options *options,
                  const struct process_handler *handler, const char **ret_step);

/*
 * Has the keeper hold the process for the next supervisor, under a name that is its cgroup's, with
 * descriptors of its owner (borrowed). Call it once the program runs, and again when the
 * descriptors change, even if the process has ended: its records are still to be read. On -errno
 * the process ends with this supervisor.
 */
int process_hold(struct process *process, enum holding_kind kind, const char *name, const int *fds,
                 size_t n_fds);

/*
 * Continues a process of the last supervisor, instead of process_start(). Its program runs, so
 * `started` is not called; nor is `ended`, if it has ended already. The owner has taken its own
 * descriptors out of `held`, which is freed in any case. Returns 0, or -errno: the process is
 * killed, and nothing is left.
 */
int process_adopt(struct process *process, struct held *held,
                  const struct process_handler *handler);

/* The process has shown that it runs: calls `started` if it was not called yet. Returns false if
 * the keeper has not answered yet, or the start has failed; then `started` or `failed` follows. */
bool process_confirm(struct process *process);

/* Returns whether `pid` is this process or a descendant: in its cgroup, or without cgroups
 * started by it (process-kin.c). False if unknown, for instance after its end. */
bool process_has(const struct process *process, pid_t pid);
/* Returns whether the process is exiting or gone; true if unknown. */
bool process_is_exiting(const struct process *process);

/* Sends a signal to the process alone. */
void process_signal(struct process *process, int signal);
/* Sends a signal, then SIGCONT, to the process and its descendants (process-rest.c). The handler's
 * `exited` is then called after the end of all of them, or after process_kill_all(). */
void process_signal_all(struct process *process, int signal);
/* Sends SIGKILL to its cgroup, or without one to its process group. */
void process_kill_all(struct process *process);

/* Returns whether the OOM killer has killed in its cgroup since the last call, and notes whose
 * limit it was; false without cgroups. */
bool process_take_oom_kill(struct process *process);
/* Returns what process_take_oom_kill() has noted. */
const char *process_oom(const struct process *process);

/* Returns `process->kill`, which it makes if there is none; NULL without memory. */
struct process_kill *process_note_kill(struct process *process);
/* Returns the forbidden call for which the process `pid`, of this worker, was killed, or NULL. The
 * number may be that of the worker's own PID namespace. */
const char *process_forbidden_call(const struct process *process, pid_t pid);

/* Copies its output after `since`, a mark of capture_position(), as capture_tail() does, but
 * without a NUL, and without the priorities of lines unless SyslogLevelPrefix=no. Kept until the
 * next start. */
size_t process_last_output(const struct process *process, size_t since, char *buffer, size_t size);

/* Kills what is left in its cgroup, reads the rest of its output, removes the cgroup. Called by
 * `exited`. */
void process_release(struct process *process);
/* Makes drained() be called again. */
void process_resume_reap(struct process *process);

/* ---- internal interface between process*.c ---- */

/* Call it when the process is reaped. Returns whether `exited` waits for the rest. */
bool process_rest_await(struct process *process);
/* Kills the rest, and frees it. Harmless without one. */
void process_rest_end(struct process *process);

/* Kills what is in its cgroup, but not its mate. */
void process_kill_cgroup(struct process *process);
/* Whether its mate runs or is being started. */
static inline bool process_has_mate(const struct process *process)
{
    return process->mate && process->mate->client.id != 0;
}
/* Opens the cgroup of its mate. Kills what a former worker has left there, and after a second the
 * mate. Returns 0, CGROUP_E_UNAVAILABLE, -EBUSY if something was left, or -errno. */
int process_share_cgroup(struct process *process);

/* Whether `pid` is in its cgroup; true without cgroups. */
bool process_shares_cgroup(const struct process *process, pid_t pid);

/* Asks the template to fork the process (process-fork.c). Returns 0 or -errno. */
int process_fork(struct process *process, const struct process_options *options, int output);
/* Whether this pid is that of the process that the template has forked. That one waits behind the
 * gate, so no other process can have got its pid. */
bool process_is_at_gate(const struct process *process, pid_t pid);
/* The keeper has taken the process: it runs its program from now on. */
void process_fork_passed(struct process *process);
/* Closes the gate; a process behind it exits. Harmless without one. */
void process_close_gate(struct process *process);
/* The template did not fork the process: calls `failed`. */
void process_fork_failed(struct process *process, int error);

/* Forgets the last process. */
void process_begin(struct process *process, const struct process_handler *handler);
/* Watches for the end of the process. Returns 0 or -errno. */
int process_watch_exit(struct process *process, int pidfd);
/* Watches for forbidden system calls (process-calls.c); takes over the descriptor. */
void process_listen(struct process *process, int fd);
/* Reads report_fd, keeps what confines the process and its mounts, and listens if a listener comes.
 * Returns 1 with `*ret` for a failed start, 0 if the program runs, -EAGAIN, -EMFILE if the listener
 * was lost, or -errno. */
int process_read_report(struct process *process, struct spawn_report *ret);
/* Also records the calls that this configuration lists. */
void process_log_calls(struct process *process, const struct config_group *config);
