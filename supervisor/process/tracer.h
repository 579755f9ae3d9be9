/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Looks where the threads of a worker are: starts troupe-trace with the worker's user and
 * capabilities. Never waits: the process may go on, or end, once it is `released`, and the text
 * comes later. A bounded number runs at a time, shared by the groups. One that hangs, for instance
 * in a file system of the worker, keeps its place until it ends, and nothing else.
 */

#include "shared/base/list.h"
#include "shared/ring/memory.h"
#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stddef.h>

struct process;
struct death;
struct trace;

#define TRACE_NOT_INSTALLED "troupe-trace is not installed"

struct tracer {
    const char *program; /* of troupe-trace; NULL = it is not installed */
    struct list traces;
    size_t n;
};

struct trace_handler {
    /* The process may go on, or end. Called once, before ended(). */
    void (*released)(void *userdata);
    /* The last call. The text is as in struct trace_output; NULL = there is none, and `missing`,
     * static, says why. The callee owns the text. */
    void (*ended)(void *userdata, char *text, size_t size, const char *missing);
};

void tracer_init(struct tracer *tracer, const char *program);
void tracer_deinit(struct tracer *tracer);

/* Begins to look at the process, which runs; `crash` NULL = it has not crashed. Both are the
 * worker's words. Returns 0 with `*ret`, which is valid until ended() or trace_forget(). Returns
 * -ENOENT without troupe-trace, -EBUSY if too many are looked at, or -errno; `*ret_missing` says so
 * in words, static. */
int trace_start(struct trace **ret, struct process *process, const struct config_group *config,
                const struct memory_crash *crash, const struct trace_handler *handler,
                void *userdata, const char **ret_missing);
/* The text goes to the report, when it comes, instead of to ended(). */
void trace_report_to(struct trace *trace, struct death *death);
/* No further call. NULL allowed; returns NULL. */
struct trace *trace_forget(struct trace *trace);
