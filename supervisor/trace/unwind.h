/* SPDX-License-Identifier: MIT */
#pragma once

#include "supervisor/trace/sample.h"

/* Text of bounded size that takes no more once it is full; see struct trace_output. */
struct trace_text {
    char *data;
    uint32_t *size; /* shared with the supervisor: what is there if this process is killed counts */
    size_t max;
};

/* Opens what unwind() needs of this process. To be called before confine(). */
void unwind_prepare(void);
/* Unwinds the threads of a sample, the one that crashed first, and appends them. Reads files of the
 * process, any of which may be hostile or never answer. */
void unwind(const struct target *target, int vdso, struct trace_text *text);
