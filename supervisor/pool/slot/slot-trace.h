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

/* A crash that the watcher of CrashStacks= has reported, and that no death report has yet. */
struct slot_crash {
    struct watch_crash what; /* pid 0 = there is none */
    struct trace *trace;     /* the next four as in struct slot_trace */
    char *text;
    size_t size;
    const char *missing;
};

/* The look at the present worker. */
struct slot_trace {
    struct trace *trace; /* running; NULL = none */
    bool taken;          /* it has been looked at, or could not be */
    int signal;          /* of its crash, as it says; 0 = it hangs */
    char *text;          /* what was found; NULL = nothing, because of `missing` */
    size_t size;
    const char *missing;
    struct timer timer;              /* armed while `then` waits */
    void (*then)(struct slot *slot); /* what was delayed; NULL = nothing */
    struct slot_crash crash;
};

void slot_trace_init(struct slot *slot);
/* Forgets the last worker, and what was delayed. */
void slot_trace_reset(struct slot *slot);
/* A new worker, or one that was taken over, is to wait when it crashes. */
void slot_trace_want(struct slot *slot);
/* CrashStacks=: a process that is about to start is to be watched, or one that runs. */
void slot_trace_watch(struct slot *slot, bool runs);
/* Adds the stacks to the report of a process that the worker has started, such as a command. */
void slot_trace_claim(struct slot *slot, struct death *death);
/* Gives a crash that no report has a report of its own, before the job in hand ends. */
void slot_trace_settle(struct slot *slot);
/* The worker says that it crashes. */
void slot_trace_crash(struct slot *slot);
/* Looks at a worker that hangs, before `then` ends it. Returns whether `then` is called later,
 * after 45 ms at most. */
bool slot_trace_first(struct slot *slot, void (*then)(struct slot *slot));
/* Looks at the worker for a client. Like trace_start(), but sets look.crash itself. */
int slot_trace_now(struct slot *slot, struct trace_look look, struct trace **ret,
                   const struct trace_handler *handler, void *userdata, const char **ret_missing);
/* Drops what was delayed: it is not needed any more. */
void slot_trace_cancel(struct slot *slot);
/* Adds the stacks to the report, perhaps later. */
void slot_trace_report(struct slot *slot, struct death *death);
