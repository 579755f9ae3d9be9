/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How the last jobs of a cell or a group ended: dead, or by an answer of their worker. It tells a
 * group that is broken from one that works, whatever the totals since the start say.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

#define OUTCOMES_MAX    1000u /* jobs that are remembered */
#define OUTCOMES_RECENT 20u   /* of these, the ones that decide whether the group is failing */
#define OUTCOMES_ENOUGH 3u    /* dead jobs before it is */

/* All zero = no job has ended yet. */
struct outcomes {
    uint64_t dead[(OUTCOMES_MAX + 63) / 64]; /* a ring of bits */
    uint16_t n, next, n_dead;                /* jobs in the ring, its end, dead ones in it */
    uint32_t recent;                         /* the last OUTCOMES_RECENT ones, newest in bit 0 */
    usec_t since; /* realtime of the first dead job of those that made, or may make, it failing */
};

/* As outcomes_add(), in every case. */
void outcomes_note(struct outcomes *outcomes, bool dead, usec_t now);

/* A job has ended. `now`: realtime. */
static inline void outcomes_add(struct outcomes *outcomes, bool dead, usec_t now)
{
    /* One more answer changes nothing where all jobs that are remembered were answered. */
    if (dead || outcomes->n_dead > 0 || outcomes->n < OUTCOMES_MAX)
        outcomes_note(outcomes, dead, now);
}

/* At least half of the last OUTCOMES_RECENT jobs are dead, and no fewer than OUTCOMES_ENOUGH. */
bool outcomes_failing(const struct outcomes *outcomes);

/*
 * How many of the last `*ret_n` jobs are dead: of all that are remembered, or of the recent ones if
 * only these are bad.
 */
unsigned outcomes_count_dead(const struct outcomes *outcomes, unsigned *ret_n);
