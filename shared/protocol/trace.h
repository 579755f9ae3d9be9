/* SPDX-License-Identifier: MIT */
#pragma once

/* What troupe-trace inherits from the supervisor, and writes for it. */

#include <stdint.h>

#define TRACE_FD_PROCESS 3 /* pidfd */
#define TRACE_FD_RELEASE 4 /* eventfd */
#define TRACE_FD_OUTPUT  5 /* memfd of the size of struct trace_output */

#define TRACE_TEXT_MAX 65528u

/* Hostile: the sizes are checked, and the text is read as unwind.h describes it. */
struct trace_output {
    int32_t error; /* -errno */
    uint32_t size;
    char text[TRACE_TEXT_MAX];
};
