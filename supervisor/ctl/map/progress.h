/* SPDX-License-Identifier: MIT */
#pragma once

/* The progress line of `map`: counts, rate, and a bar with the time left if the end is known. */

#include "shared/base/clock.h"
#include "supervisor/ctl/text/terminal.h"
#include <stdbool.h>
#include <stdint.h>

struct progress {
    struct terminal terminal;
    const char *title; /* borrowed */
    bool enabled;
    bool visible; /* a line stands there and has to be overwritten */
    usec_t started_at, shown_at;
    uint64_t shown_done; /* when it was last shown */
    double rate;         /* per second, smoothed; 0 = not known yet */
};

struct progress_counts {
    uint64_t done, failed, retried;
    double position; /* 0 … 1; negative = not known */
    bool queue_full;
};

void progress_init(struct progress *progress, const char *title, bool enabled,
                   enum terminal_color color, usec_t now);

/* Shows it if it is time to. */
void progress_update(struct progress *progress, const struct progress_counts *counts, usec_t now);

/* Makes room for something else on the same terminal; the next update shows it again. */
void progress_hide(struct progress *progress);
