/* SPDX-License-Identifier: MIT */
#pragma once

/* Where a worker's threads were when it crashed, or before it is ended because it hangs. */

#include "supervisor/loop/timer.h"
#include "supervisor/process/tracer.h"
#include "supervisor/process/watch.h"
#include <stdbool.h>
#include <stddef.h>

struct slot;
struct death;
struct trace;
struct trace_handler;

/* A crash that the watcher of CrashStacks= has told of, and no report has yet. */
struct slot_crash {
    struct watch_crash what; /* pid 0 = there is none */
    struct trace *trace;     /* the next four as in struct slot_trace */
    char *text;
    size_t size;
    const char *missing;
};

/* The look at the present worker. */
struct slot_trace {
    struct trace *trace; /* under way; NULL = none */
    bool taken;          /* it has been looked at, or could not be */
    int signal;          /* with which it says that it crashes; 0 = it hangs */
    char *text;          /* what was found; NULL = nothing, because of `missing` */
    size_t size;
    const char *missing;
    struct timer timer;              /* armed while `then` waits */
    void (*then)(struct slot *slot); /* what was put off; NULL = nothing */
    struct slot_crash crash;
};

void slot_trace_init(struct slot *slot);
/* Forgets the last worker, and what was put off. */
void slot_trace_reset(struct slot *slot);
/* A new worker, or one that was taken over, is to wait when it crashes. */
void slot_trace_want(struct slot *slot);
/* CrashStacks=: a process that is about to start is to be watched, or one that runs. */
void slot_trace_watch(struct slot *slot, bool runs);
/* Adds the stacks of a process of the worker that died of this signal. `pid`: in its own PID
 * namespace. */
void slot_trace_claim(struct slot *slot, struct death *death);
/* A crash that no report has gets one of its own, before the job in hand ends. */
void slot_trace_settle(struct slot *slot);
/* The worker says that it crashes. */
void slot_trace_crash(struct slot *slot);
/* Before the worker is ended by `then`: looks at it first if it hangs. Returns whether `then` is
 * called later, 45 ms at most. */
bool slot_trace_first(struct slot *slot, void (*then)(struct slot *slot));
/* Looks at the worker for somebody else: as trace_start(), with a `look` without a crash. */
int slot_trace_now(struct slot *slot, struct trace_look look, struct trace **ret,
                   const struct trace_handler *handler, void *userdata, const char **ret_missing);
/* Drops what was put off: it is not needed any more. */
void slot_trace_cancel(struct slot *slot);
/* Adds the stacks to the report, perhaps later. */
void slot_trace_report(struct slot *slot, struct death *death);
