/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Timers: a binary heap of embedded nodes; arm, re-arm and cancel are O(log n), the earliest O(1).
 * Of the same time, the one that was armed first comes first.
 * Times are absolute, in the queue's own clock (monotonic microseconds in the supervisor).
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    usec_t at;
    uint64_t order; /* among those of the same time */
    size_t index;   /* place in the heap + 1; 0 = not armed */
    void (*fn)(struct timer *timer, usec_t now);
};

struct timer_queue {
    struct timer **heap;
    size_t n_timers, n_allocated;
    uint64_t n_armed; /* ever */
};

/* clang-format off */
#define TIMER_QUEUE_NULL {0}
/* clang-format on */

void timer_queue_deinit(struct timer_queue *queue);

void timer_init(struct timer *timer, void (*fn)(struct timer *timer, usec_t now));

static inline bool timer_armed(const struct timer *timer)
{
    return timer->index > 0;
}

/* Arms or re-arms. USEC_INFINITY disarms. 0 or -ENOMEM (then the timer is not armed). */
int timer_arm(struct timer_queue *queue, struct timer *timer, usec_t at);

/* Allowed when not armed. */
void timer_disarm(struct timer_queue *queue, struct timer *timer);

/* When the earliest is due; USEC_INFINITY when none is armed. */
usec_t timer_queue_next(const struct timer_queue *queue);

/*
 * Fires what is due at `now`, earliest first, and at most `max` of it; each is disarmed before its
 * call, and may be re-armed in it.
 */
void timer_queue_run(struct timer_queue *queue, usec_t now, size_t max);
