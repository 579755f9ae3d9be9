/* SPDX-License-Identifier: MIT */
#pragma once

/* How the last jobs of a cell or a group ended: dead, or answered by their worker. Tells a failing
 * group from a working one, whatever its totals since the start. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct record;

#define OUTCOMES_MAX    1000u /* jobs remembered */
#define OUTCOMES_RECENT 20u   /* of these, the ones that decide about failing */
#define OUTCOMES_ENOUGH 3u    /* dead jobs that make it failing */

/* All zero = no job has ended yet. */
struct outcomes {
    uint64_t dead[(OUTCOMES_MAX + 63) / 64]; /* a ring of bits */
    uint16_t n, next, n_dead;                /* jobs in the ring, its end, dead ones in it */
    uint32_t recent;                         /* the last OUTCOMES_RECENT ones, newest in bit 0 */
    usec_t since; /* realtime of the first dead job of this failure; 0 = none */
};

/* The slow path of outcomes_add(). */
void outcomes_note(struct outcomes *outcomes, bool dead, usec_t now);

/* Notes the end of a job. `now`: realtime. */
static inline void outcomes_add(struct outcomes *outcomes, bool dead, usec_t now)
{
    /* If all remembered jobs were answered, one more answer changes nothing. */
    if (dead || outcomes->n_dead > 0 || outcomes->n < OUTCOMES_MAX)
        outcomes_note(outcomes, dead, now);
}

/* Whether at least half of the last OUTCOMES_RECENT jobs are dead, and at least OUTCOMES_ENOUGH. */
bool outcomes_failing(const struct outcomes *outcomes);

/* Returns how many of the last `*ret_n` jobs are dead: of all remembered ones, or of the recent
 * ones if only those fail. */
unsigned outcomes_count_dead(const struct outcomes *outcomes, unsigned *ret_n);

extern const struct record OUTCOMES_RECORD;
