/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What `map` says of lines that did not succeed. Each has its own sentence; but lines next to each
 * other that were cancelled or refused for the same reason, as all are when the supervisor stops,
 * share one.
 */

#include "worker/troupe.h"
#include <stdbool.h>
#include <stdint.h>

struct window_line;

struct map_failures {
    const char *group; /* borrowed */
    uint64_t first, n; /* of the run that is to be told: its first line (from 1), how many */
    enum troupe_end end;
    int error;               /* -errno of a refusal, or 0 */
    char id[TROUPE_ID_SIZE]; /* of the first one */
    char reason[1024];
    uint64_t again; /* the first line of all that did not succeed; 0 = none */
};

/* Returns an enum exit_status. What can be told in a run is told later. */
int map_failures_add(struct map_failures *failures, const struct window_line *line);

/* Tells what is still to be told. `last`: map ends here, and others may go on where it stopped. */
void map_failures_tell(struct map_failures *failures, bool last);
