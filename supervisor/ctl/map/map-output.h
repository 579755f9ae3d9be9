/* SPDX-License-Identifier: MIT */
#pragma once

/* What `map` prints: results, failures, and a line about its progress. */

#include "shared/base/clock.h"
#include "supervisor/ctl/text/terminal.h"
#include "worker/troupe.h"
#include <stdbool.h>
#include <stdint.h>

struct options;
struct window_line;

/* Writes the result of a finished line, followed by a newline or NUL, to standard output:
 * unchanged, with its input, or as JSON. With an output directory, writes a successful result to a
 * file there, and its path to standard output. Returns 0, or -errno if that file cannot be written.
 */
int map_output_write(const struct options *options, const char *group,
                     const struct window_line *line);

/* ---- failures ---- */

/* Lines that did not succeed. Of adjacent ones that were cancelled or refused for the same reason,
 * only the first is told in full. */
struct map_failures {
    const char *group;    /* borrowed */
    uint64_t first, last; /* the run so far, from 1 */
    enum troupe_end end;
    int error; /* -errno of a refusal, or 0 */
    char reason[1024];
};

/* Tells why a line did not succeed, and returns an enum exit_status. */
int map_failures_add(struct map_failures *failures, const struct window_line *line);
/* Tells which further lines there were in the last run. */
void map_failures_end(struct map_failures *failures);

/* ---- progress ---- */

/* A line about the progress on a terminal. */
struct progress {
    struct terminal terminal;
    const char *title; /* borrowed */
    bool enabled;
    bool visible; /* a progress line is visible and must be overwritten */
    usec_t started_at, shown_at;
};

/* Shows nothing unless standard error is a terminal, or if `quiet`. */
void progress_init(struct progress *progress, const char *title, bool quiet);

/* Shows how many jobs are done, and how many of these failed, if the update interval has passed. */
void progress_update(struct progress *progress, uint64_t n_done, uint64_t n_failed);

/* Clears the line for other output; the next update shows it again. */
void progress_hide(struct progress *progress);
