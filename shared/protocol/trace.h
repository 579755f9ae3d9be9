/* SPDX-License-Identifier: MIT */
#pragma once

/* What troupe-trace inherits from the supervisor, and writes for it. */

#include <stdint.h>

#define TRACE_FD_PROCESS 3 /* pidfd */
#define TRACE_FD_RELEASE 4 /* eventfd */
#define TRACE_FD_OUTPUT  5 /* memfd of the size of struct trace_output */

#define TRACE_TEXT_MAX 65016u

/*
 * Hostile: sizes are checked. The text has lines of fields that are separated by tabs:
 *
 *     T  thread id  name  "crashed", "" or "running" if its registers are not known
 *     F  language ("c", "python")  module  function  offset in it  file  line
 *
 * A field that is not known is empty, or 0; a frame without a function has its offset in the
 * module, or its address.
 */
struct trace_output {
    int32_t error; /* -errno */
    uint32_t size;
    char start[512]; /* where the new process reports what it reports before it executes the program
                        (struct spawn_report) */
    char text[TRACE_TEXT_MAX];
};
