/* SPDX-License-Identifier: MIT */
#pragma once

/* What troupe-trace inherits from the supervisor, and writes for it. */

#include <stdint.h>

/* Instead of a pidfd, `troupe-trace watch` has a SOCK_SEQPACKET socket for orders and notices. */
#define TRACE_FD_ORDERS 3

#define TRACE_FD_PROCESS 3 /* pidfd */
#define TRACE_FD_RELEASE 4 /* eventfd */
#define TRACE_FD_OUTPUT  5 /* memfd of the size of struct trace_output */

#define TRACE_FD_ANSWER 6 /* socket, for a profile: a bool for each sample, whether it counts */

/* The most that a look at a process yields, or a profile. */
#define TRACE_TEXT_MAX    65016u
#define TRACE_PROFILE_MAX 261624u

/*
 * Hostile: sizes are checked. The text has lines of fields that are separated by tabs:
 *
 *     T  thread id  name  "crashed", "" or "running" if its registers are not known
 *     F  language ("c", "python")  module  function  offset in it  file  line
 *
 * A field that is not known is empty, or 0; a frame without a function has its offset in the
 * module, or its address. The text of a profile begins with a line of fixed size,
 *
 *     P  samples  missed  left out  microseconds for which the process was stopped, and in all
 *
 * and has a line for each stack:
 *
 *     how often  name of the thread  "runs" or "waits"  functions, outermost first
 */
#define TRACE_PROFILE_HEAD 67u

struct trace_output {
    int32_t error; /* -errno */
    uint32_t size;
    char start[512]; /* where the new process reports what it reports before it executes the program
                        (struct spawn_report) */
    char text[TRACE_PROFILE_MAX];
};

/* ---- of a process that is watched for crashes ---- */

enum watch_order_kind {
    WATCH_ATTACH = 1, /* `pid`, with its pidfd: watch it and all processes that it has or starts */
    WATCH_LOOK,   /* take the stacks of the process and its children now, as `troupe-trace PID` */
    WATCH_UNWIND, /* what was sampled of the process of the last WATCH_CRASHED */
    WATCH_DROP,   /* that is not wanted */
};

/* From the supervisor. */
struct watch_order {
    uint32_t kind;
    int32_t pid;
    int32_t crashed; /* this and the next three as struct hints */
    uint32_t python_version;
    uint64_t context, python;
};

enum watch_notice_kind {
    WATCH_ATTACHED = 1, /* or `error`: it watches nothing */
    WATCH_CRASHED,      /* `pid` gets a fatal signal. Answered by UNWIND or DROP; until then, and
                           until UNWOUND, no further one is told of */
    WATCH_RELEASED,     /* the process of WATCH_LOOK may end */
    WATCH_UNWOUND,      /* the text is there; or `error` */
};

/* Hostile: the watcher has the user of what it watches. */
struct watch_notice {
    uint32_t kind;
    int32_t error;          /* -errno */
    int32_t pid, inner_pid; /* the second one in its own PID namespace */
    int32_t signal;
    char name[16]; /* of the process */
};
