/* SPDX-License-Identifier: MIT */
#pragma once

/* Spins a little before sleeping: a wake-up takes tens of microseconds, an answer that is on its
 * way only a few. The CPU is offered to other processes regularly, sooner if the awaited peer turns
 * out to share it. Time spent is balanced against time saved: while spinning does not pay off, it
 * is tried only rarely. The saving is learnt from the cost of waking peers: between CPUs of a
 * virtual machine it is several times that of bare metal. It never lasts longer than `limit`. Use:
 * spin_begin(); while nothing is found, spin_more(); finally spin_end(). */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

#define SPIN_USEC_MAX 10000

/* The maximum number of looks before the CPU is offered: two to four microseconds. */
#define SPIN_PATIENCE_MAX 48

struct spin {
    uint32_t limit;  /* microseconds; 0 = never */
    int32_t balance; /* microseconds saved beyond those spent; bounded */
    uint32_t pause;  /* while it does not pay off: sleeps between two tries */
    uint32_t paused; /* sleeps since the last try */
    /* Looks before the CPU is offered; learnt. A caller that waits for several peers keeps a value
     * for each, and sets it before a try. */
    uint32_t patience;
    uint32_t n_found;
    uint32_t n_wakes;  /* of peers */
    int64_t wake_nsec; /* the average cost of one; learnt */
    /* This try: */
    usec_t began;
    uint32_t allowed;    /* looks: `patience`, or sometimes the maximum */
    uint32_t looks;      /* since the CPU was offered last */
    bool offered, taken; /* and another process has used it */
    uint32_t n_taken;    /* times that another process has used it */
    uint64_t lent;       /* nanoseconds of the single use, if that was the peer's */
};

/* `limit` above SPIN_USEC_MAX counts as that. */
void spin_init(struct spin *spin, uint32_t limit);

/* Returns whether to spin this time. */
bool spin_begin(struct spin *spin, usec_t now);

/* Call after a look that found nothing. Returns true to look again, false to sleep. */
bool spin_more(struct spin *spin, usec_t now);

/* Call these around waking a peer: some wake-ups are measured to learn their cost.
 * spin_wake_begin() returns 0 if this one is not measured. */
uint64_t spin_wake_begin(struct spin *spin);
void spin_wake_end(struct spin *spin, uint64_t begin);

/* Parts of spin_wake_begin(), spin_wake_end() and spin_more() for tests: a measured wake-up. */
void spin_woke(struct spin *spin, uint32_t nsec);
void spin_offered(struct spin *spin, uint64_t nsec);

/* Ends the try. */
void spin_end(struct spin *spin, usec_t now, bool found);
