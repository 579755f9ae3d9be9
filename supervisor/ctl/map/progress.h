/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The progress line of `map`: counts, rate, and, if the total is known, a bar with the remaining
 * time.
 */

#include "shared/base/clock.h"
#include "supervisor/ctl/text/terminal.h"
#include <stdbool.h>
#include <stdint.h>

struct progress {
    struct terminal terminal;
    const char *title; /* borrowed */
    bool enabled;
    bool visible; /* a progress line is visible and must be overwritten */
    usec_t started_at, shown_at;
    uint64_t shown_done; /* when it was last shown */
    double rate;         /* per second, smoothed; 0 = not known yet */
};

struct progress_counts {
    uint64_t done, failed, retried;
    double position; /* 0 … 1; negative = not known */
    bool queue_full;
};

/* Shows nothing unless standard error is a terminal, or if `quiet`. */
void progress_init(struct progress *progress, const char *title, bool quiet, usec_t now);

/* Shows the line if the update interval has passed. */
void progress_update(struct progress *progress, const struct progress_counts *counts, usec_t now);

/* Clears the line for other output; the next update shows it again. */
void progress_hide(struct progress *progress);
