/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Looks where the threads of a worker are: starts troupe-trace with the worker's user and
 * capabilities. Never blocks: the process may continue, or end, once released() is called, and the
 * text comes later. The groups share a bounded number of looks at a time. One that hangs, for
 * instance in a file system of the worker, occupies its place until it ends, and nothing else.
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
#define TRACE_BUSY          "too many other processes were being looked at"

struct tracer {
    const char *program; /* of troupe-trace; NULL = it is not installed */
    bool may_trace;      /* the keeper has CAP_SYS_PTRACE */
    struct list traces;
    size_t n;            /* traces that are no profiles */
    struct list watches; /* of watch.c */
};

struct trace_handler {
    /* The process may continue, or end. Called once, before ended(). NULL allowed. */
    void (*released)(void *userdata);
    /* For a profile: another sample was taken. Returns whether it counts and the profile continues.
     * Must not call trace_forget(). */
    bool (*sampled)(void *userdata);
    /* The last call. The text is as in struct trace_output, and of a profile may be cut at any
     * line; NULL = there is none, and `missing`, static, says why. The callee owns the text. */
    void (*ended)(void *userdata, char *text, size_t size, const char *missing);
};

struct trace_look {
    const struct memory_crash *crash; /* NULL = it has not crashed */
    usec_t duration;                  /* of a profile; 0 = one look */
    uid_t uid;                        /* for whom the profile is */
};

void tracer_init(struct tracer *tracer, const char *program);
void tracer_deinit(struct tracer *tracer);

/* Begins to look at the process, which runs. Nothing in look->crash is trusted. Returns 0 with
 * `*ret`, which is valid until ended() or trace_forget(). Returns -ENOENT without troupe-trace,
 * -EBUSY if too many are looked at, or -errno; `*ret_missing` says so in words, static. */
int trace_start(struct trace **ret, struct process *process, const struct config_group *config,
                const struct trace_look *look, const struct trace_handler *handler, void *userdata,
                const char **ret_missing);
/* The text goes to the report, when it comes, instead of to ended(). */
void trace_report_to(struct trace *trace, struct death *death);
/* Makes no further call, and ends a profile. NULL allowed; returns NULL. */
struct trace *trace_forget(struct trace *trace);

/* ---- for watch.c ---- */

/* Like trace_start(), but a watcher looks, which writes to `output_fd` (borrowed). `*ret` becomes
 * NULL when the trace is gone. */
int trace_expect(struct trace **ret, struct process *process, int output_fd,
                 const struct trace_handler *handler, void *userdata, const char **ret_missing);
/* The watcher says that the process may continue, or that it will write no more. NULL allowed. */
void trace_release(struct trace *trace);
void trace_end(struct trace *trace);
/* Arguments of a program that looks at processes with this configuration: its user, its
 * capabilities and `more`, all limits but that of CPU time. They refer to `sandbox`, which is
 * filled in and stays the caller's. */
struct spawn_options trace_options(const struct config_group *config, uint64_t more,
                                   struct sandbox *sandbox);
/* Makes the memory for struct trace_output. Returns its descriptor or -errno. */
int trace_open_output(void);
