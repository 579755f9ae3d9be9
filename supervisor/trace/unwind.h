/* SPDX-License-Identifier: MIT */
#pragma once

#include "shared/protocol/trace.h"
#include "supervisor/trace/sample.h"

/* Confines this process, unwinds the threads of the samples, those that crashed first, and writes
 * them. Reads files of the processes, any of which may be hostile or never answer. Returns 0 or
 * -errno. */
int unwind_all(const struct target *targets, size_t n, struct trace_output *output);
