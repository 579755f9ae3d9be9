/* SPDX-License-Identifier: MIT */
#pragma once

/* Timers: a heap of embedded nodes; arm, re-arm and cancel are O(log n) and need no memory, the
 * earliest O(1). Timers of the same time fire in the order in which they were armed. Times are
 * absolute, in the clock of the queue's user: monotonic microseconds in the loop. */

#include "shared/base/clock.h"
#include "shared/base/heap.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    struct heap_node node;
    void (*fn)(struct timer *timer, usec_t now);
};

struct timer_queue {
    struct heap heap;
};

/* clang-format off */
#define TIMER_QUEUE_NULL {HEAP_NULL}
/* clang-format on */

void timer_init(struct timer *timer, void (*fn)(struct timer *timer, usec_t now));

static inline bool timer_armed(const struct timer *timer)
{
    return heap_has(&timer->node);
}

/* Returns when it is due, or was due when it was last armed. */
static inline usec_t timer_at(const struct timer *timer)
{
    return timer->node.key;
}

/* Arms or re-arms. USEC_INFINITY disarms. */
void timer_arm(struct timer_queue *queue, struct timer *timer, usec_t at);

/* Idempotent. */
void timer_disarm(struct timer_queue *queue, struct timer *timer);

/* When the earliest is due; USEC_INFINITY = none is armed. */
usec_t timer_queue_next(const struct timer_queue *queue);

/* Fires at most `max` timers that are due at `now`, earliest first. Each is disarmed before its
 * call, which may arm it again. */
void timer_queue_run(struct timer_queue *queue, usec_t now, size_t max);
