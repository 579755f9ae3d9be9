/* SPDX-License-Identifier: MIT */
#pragma once

/* Timers: a binary heap of embedded nodes; arm, re-arm and cancel are O(log n), the earliest O(1).
 * Timers of the same time fire in the order in which they were armed. Times are absolute, in the
 * clock of the queue's user: monotonic microseconds in the loop. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    usec_t at;
    uint64_t order; /* among those of the same time */
    size_t index;   /* position in the heap + 1; 0 = not armed */
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

/* Idempotent. */
void timer_disarm(struct timer_queue *queue, struct timer *timer);

/* When the earliest is due; USEC_INFINITY = none is armed. */
usec_t timer_queue_next(const struct timer_queue *queue);

/* Fires at most `max` timers that are due at `now`, earliest first. Each is disarmed before its
 * call, which may arm it again. */
void timer_queue_run(struct timer_queue *queue, usec_t now, size_t max);
