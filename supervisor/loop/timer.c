/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/timer.h"
#include "shared/base/fault.h"
#include <errno.h>
#include <stdlib.h>

static bool is_before(const struct timer *a, const struct timer *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void place(struct timer_queue *queue, size_t i, struct timer *timer)
{
    queue->heap[i] = timer;
    timer->index = i + 1;
}

/* Moves `timer` from the hole at `i` towards the root until its parent is not later. */
static void sift_up(struct timer_queue *queue, size_t i, struct timer *timer)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (is_before(queue->heap[parent], timer))
            break;
        place(queue, i, queue->heap[parent]);
        i = parent;
    }
    place(queue, i, timer);
}

static void sift_down(struct timer_queue *queue, size_t i, struct timer *timer)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= queue->n_timers)
            break;
        if (child + 1 < queue->n_timers && is_before(queue->heap[child + 1], queue->heap[child]))
            child++;
        if (is_before(timer, queue->heap[child]))
            break;
        place(queue, i, queue->heap[child]);
        i = child;
    }
    place(queue, i, timer);
}

static int grow(struct timer_queue *queue)
{
    size_t n = queue->n_allocated > 0 ? queue->n_allocated * 2 : 64;
    int r = fault_inject("alloc");
    struct timer **heap = r < 0 ? NULL : reallocarray(queue->heap, n, sizeof(*heap));
    if (!heap)
        return -ENOMEM;
    queue->heap = heap;
    queue->n_allocated = n;
    return 0;
}

void timer_queue_deinit(struct timer_queue *queue)
{
    for (size_t i = 0; i < queue->n_timers; i++)
        queue->heap[i]->index = 0;
    free(queue->heap);
    *queue = (struct timer_queue)TIMER_QUEUE_NULL;
}

void timer_init(struct timer *timer, void (*fn)(struct timer *timer, usec_t now))
{
    *timer = (struct timer){.at = USEC_INFINITY, .fn = fn};
}

int timer_arm(struct timer_queue *queue, struct timer *timer, usec_t at)
{
    if (at == USEC_INFINITY) {
        timer_disarm(queue, timer);
        return 0;
    }
    if (timer_armed(timer)) {
        size_t i = timer->index - 1;
        bool earlier = at < timer->at;
        timer->at = at;
        timer->order = queue->n_armed++;
        if (earlier)
            sift_up(queue, i, timer);
        else
            sift_down(queue, i, timer);
        return 0;
    }
    if (queue->n_timers == queue->n_allocated) {
        int r = grow(queue);
        if (r < 0)
            return r;
    }
    timer->at = at;
    timer->order = queue->n_armed++;
    sift_up(queue, queue->n_timers++, timer);
    return 0;
}

void timer_disarm(struct timer_queue *queue, struct timer *timer)
{
    if (!timer_armed(timer))
        return;
    size_t i = timer->index - 1;
    struct timer *last = queue->heap[--queue->n_timers];
    timer->index = 0;
    if (last == timer)
        return;
    if (i > 0 && is_before(last, queue->heap[(i - 1) / 2]))
        sift_up(queue, i, last);
    else
        sift_down(queue, i, last);
}

usec_t timer_queue_next(const struct timer_queue *queue)
{
    return queue->n_timers > 0 ? queue->heap[0]->at : USEC_INFINITY;
}

void timer_queue_run(struct timer_queue *queue, usec_t now, size_t max)
{
    /* Bounded: a timer may arm itself again for the past. */
    size_t budget = queue->n_timers < max ? queue->n_timers : max;
    for (; budget > 0 && timer_queue_next(queue) <= now; budget--) {
        struct timer *timer = queue->heap[0];
        timer_disarm(queue, timer);
        timer->fn(timer, now);
    }
}
