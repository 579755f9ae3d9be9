/* SPDX-License-Identifier: MIT */
#pragma once

#include "shared/protocol/trace.h"
#include "supervisor/trace/sample.h"

/* Confines this process, unwinds the threads of the samples, those that crashed first, and writes
 * them. Reads files of the processes, any of which may be hostile or never answer. Returns 0 or
 * -errno. */
int unwind_all(const struct target *targets, size_t n, struct trace_output *output);

/* ---- many samples of one process ---- */

#define UNWIND_LABEL_MAX 128
#define UNWIND_LINE_MAX  (SAMPLE_FRAMES_MAX * UNWIND_LABEL_MAX + 64)

/* Unwinds samples of one process, and keeps what it has learned of its modules. */
struct folder;

/* Returns NULL without memory; lives as long as this process. */
struct folder *folder_new(const struct target *target);
/* Confines this process, after folder_new() and before folder_add(). Returns 0 or -errno. */
int folders_confine(void);
/* Unwinds the present sample of the target, and calls `add` with a line for each thread: its name,
 * "runs" or "waits", and its functions, outermost first, separated by tabs. */
void folder_add(struct folder *folder, void (*add)(void *userdata, const char *line, size_t size),
                void *userdata);
