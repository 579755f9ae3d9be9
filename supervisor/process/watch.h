/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Watches a process and those that it starts for crashes (CrashStacks=): starts `troupe-trace
 * watch`, which traces them. A process that crashes waits only for the watcher, never for the
 * supervisor. A watcher that ends, for whatever reason, leaves the process as it is.
 */

#include "supervisor/process/tracer.h"
#include <stdbool.h>
#include <sys/types.h>

struct process;

/* As the watcher says, which may be wrong: it has the user of the process. */
struct watch_crash {
    pid_t pid, inner_pid; /* the second one in its own PID namespace */
    int signal;
    char name[64]; /* of the process: printable */
};

struct watch_handler {
    /* A process is about to die of a crash. `trace` is as for trace_start(); NULL = there will be
     * no stacks, because of `missing`, static. */
    void (*crashed)(void *userdata, const struct watch_crash *crash, struct trace *trace,
                    const char *missing);
    const struct trace_handler *trace; /* of these traces */
};

/* Starts a watcher for a process that is about to start; watch_attach() follows. Best effort:
 * watch_missing() says why there is none. */
void watch_start(struct process *process, const struct config_group *config,
                 const struct watch_handler *handler, void *userdata);
/* Returns the descriptor that becomes readable when the process may continue, traced or not; 0 =
 * there is no watcher. */
int watch_gate(const struct process *process);
/* Has the watcher attach to the process, which exists now. */
void watch_attach(struct process *process);
/* Reads what the watcher has told so far. */
void watch_catch_up(struct process *process);
/* The process is gone: the watcher ends when it has finished. */
void watch_end(struct process *process);
/* To be called when the process has got SIGKILL. Its end shows only once its tracer has reaped its
 * threads: a watcher that does not, because it was stopped, is killed after a time limit. */
void watch_limit(struct process *process);
/* Kills the watcher: the process has ended, but a watcher that was stopped keeps it from being
 * reaped. */
void watch_kill(struct process *process);
/* Ends the watchers whose processes are gone. Before tracer_deinit(). */
void watch_deinit(struct tracer *tracer);
/* Whether the watcher traces the process, so that no other can. */
bool watch_is_attached(const struct process *process);
/* Like trace_start(), by the watcher. */
int watch_look(struct trace **ret, struct process *process, const struct memory_crash *crash,
               const struct trace_handler *handler, void *userdata, const char **ret_missing);
/* Returns why the process was not watched when it died, static. */
const char *watch_missing(const struct process *process);
