/* SPDX-License-Identifier: MIT */
#pragma once

/* Where a worker's threads were when it crashed, or before it is ended because it hangs. */

#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stddef.h>

struct slot;
struct death;
struct trace;
struct trace_handler;

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
};

void slot_trace_init(struct slot *slot);
/* Forgets the last worker, and what was put off. */
void slot_trace_reset(struct slot *slot);
/* A new worker, or one that was taken over, is to wait when it crashes. */
void slot_trace_want(struct slot *slot);
/* The worker says that it crashes. */
void slot_trace_crash(struct slot *slot);
/* Before the worker is ended by `then`: looks at it first if it hangs. Returns whether `then` is
 * called later, 45 ms at most. */
bool slot_trace_first(struct slot *slot, void (*then)(struct slot *slot));
/* Looks at the worker for somebody else: as trace_start(). */
int slot_trace_now(struct slot *slot, struct trace **ret, const struct trace_handler *handler,
                   void *userdata, const char **ret_missing);
/* Drops what was put off: it is not needed any more. */
void slot_trace_cancel(struct slot *slot);
/* Adds the stacks to the report, perhaps later. */
void slot_trace_report(struct slot *slot, struct death *death);
