/* SPDX-License-Identifier: MIT */
#pragma once

/* How the last jobs of a cell or a group ended: dead, or answered by their worker. Tells a failing
 * group from a working one, whatever its totals since the start. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct record;

#define OUTCOMES_MAX    20u /* jobs remembered */
#define OUTCOMES_ENOUGH 3u  /* dead jobs that make it failing */

/* All zero = no job has ended yet. */
struct outcomes {
    uint32_t dead; /* of the last jobs, newest in bit 0 */
    uint8_t n;     /* jobs remembered */
    usec_t since;  /* realtime of the first dead job of this failure; 0 = none */
};

/* The slow path of outcomes_add(). */
void outcomes_note(struct outcomes *outcomes, bool dead, usec_t now);

/* Notes the end of a job. `now`: realtime. */
static inline void outcomes_add(struct outcomes *outcomes, bool dead, usec_t now)
{
    /* If all remembered jobs were answered, one more answer changes nothing. */
    if (dead || outcomes->dead != 0 || outcomes->n < OUTCOMES_MAX)
        outcomes_note(outcomes, dead, now);
}

/* Returns how many of the remembered jobs are dead. */
unsigned outcomes_count_dead(const struct outcomes *outcomes);
/* Whether at least half of the remembered jobs are dead, and at least OUTCOMES_ENOUGH. */
bool outcomes_failing(const struct outcomes *outcomes);

extern const struct record OUTCOMES_RECORD;
