/* SPDX-License-Identifier: MIT */
#pragma once

#include "supervisor/trace/sample.h"

/* Text of bounded size that takes no more once it is full; see struct trace_output. */
struct trace_text {
    char *data;
    size_t size, max;
};

/* Unwinds the threads of a sample, the one that crashed first, and appends them. Reads files of the
 * process, any of which may be hostile or never answer. */
void unwind(const struct target *target, int vdso, struct trace_text *text);
