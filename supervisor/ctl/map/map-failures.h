/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reports the lines of `map` that did not succeed. Adjacent lines that were cancelled or refused
 * for the same reason, as happens when the supervisor stops, share one message.
 */

#include "worker/troupe.h"
#include <stdbool.h>
#include <stdint.h>

struct window_line;

struct map_failures {
    const char *group; /* borrowed */
    uint64_t first, n; /* the pending run: its first line (from 1) and length */
    enum troupe_end end;
    int error;               /* -errno of a refusal, or 0 */
    char id[TROUPE_ID_SIZE]; /* of the first job of the run */
    char reason[1024];
};

/* Adds a line and returns an enum exit_status. Messages for runs of lines are printed later. */
int map_failures_add(struct map_failures *failures, const struct window_line *line);

/* Prints the pending message. */
void map_failures_tell(struct map_failures *failures);
