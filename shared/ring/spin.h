/* SPDX-License-Identifier: MIT */
#pragma once

/* Looking for a little longer before sleeping: waking a sleeper takes tens of microseconds and a
 * system call on the other side, an answer that is already being made only a few.
 *
 * Three things keep that from costing more than it saves. Now and then the CPU is offered to
 * whoever else wants it, so that spinning only fills time in which it would have been idle; who
 * turns out to share it with the one he waits for offers it sooner. What was spent is held against
 * what was saved: while that does not pay, nobody spins but for a rare try. And there is a limit:
 * who has nothing to do is asleep after `limit`, as ever.
 *
 *     if (spin_begin(&spin, now)) {
 *         while (!(found = look()) && spin_more(&spin, now))
 *             ;
 *         spin_end(&spin, now, found);
 *     } */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

#define SPIN_USEC_MAX 10000

/* Looks before the CPU is offered, at most: some two to four microseconds. */
#define SPIN_PATIENCE_MAX 48

struct spin {
    uint32_t limit;  /* microseconds; 0 = never */
    int32_t balance; /* microseconds saved beyond those spent; bounded */
    uint32_t pause;  /* while it does not pay: sleeps between two tries */
    uint32_t paused; /* of those, so many have been */
    /* Looks before the CPU is offered; learnt. Who waits for several keeps one for each of them:
     * between two tries it is his to change. */
    uint32_t patience;
    uint32_t n_found;
    /* This try: */
    usec_t began;
    uint32_t allowed;    /* looks: patience, or once in a while the utmost */
    uint32_t looks;      /* since the CPU was offered last */
    bool offered, taken; /* and somebody has taken it */
};

/* `limit` above SPIN_USEC_MAX counts as that. */
void spin_init(struct spin *spin, uint32_t limit);

/* Whether to try, this time. */
bool spin_begin(struct spin *spin, usec_t now);

/* A look has found nothing. True: look again. False: go to sleep. */
bool spin_more(struct spin *spin, usec_t now);

/* The try is over, and has found something or not. */
void spin_end(struct spin *spin, usec_t now, bool found);
