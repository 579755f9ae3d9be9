/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/timer.h"

#include "shared/base/list.h"

void timer_init(struct timer *timer, void (*fn)(struct timer *timer, usec_t now))
{
    *timer = (struct timer){.node.key = USEC_INFINITY, .fn = fn};
}

void timer_arm(struct timer_queue *queue, struct timer *timer, usec_t at)
{
    if (at == USEC_INFINITY)
        timer_disarm(queue, timer);
    else
        heap_set(&queue->heap, &timer->node, at);
}

void timer_disarm(struct timer_queue *queue, struct timer *timer)
{
    heap_remove(&queue->heap, &timer->node);
}

usec_t timer_queue_next(const struct timer_queue *queue)
{
    const struct heap_node *first = heap_first(&queue->heap);

    return first ? first->key : USEC_INFINITY;
}

void timer_queue_run(struct timer_queue *queue, usec_t now, size_t max)
{
    /* Bounded: a timer may arm itself again for the past. */
    size_t budget = queue->heap.n_nodes < max ? queue->heap.n_nodes : max;
    for (; budget > 0 && timer_queue_next(queue) <= now; budget--) {
        struct timer *timer = list_entry(heap_first(&queue->heap), struct timer, node);
        timer_disarm(queue, timer);
        timer->fn(timer, now);
    }
}
