/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/timer.h"

#include "shared/base/list.h"

#define timer_of(node_) list_entry(node_, struct timer, node)

void timer_queue_deinit(struct timer_queue *queue)
{
    heap_deinit(&queue->heap);
}

void timer_init(struct timer *timer, void (*fn)(struct timer *timer, usec_t now))
{
    *timer = (struct timer){.node.key = USEC_INFINITY, .fn = fn};
}

/* Whether armed or not, reserved timers have their room. */
static int make_room(struct timer_queue *queue, size_t n_reserved)
{
    return heap_reserve(&queue->heap, queue->heap.n_nodes + n_reserved);
}

int timer_reserve(struct timer_queue *queue)
{
    const int r = make_room(queue, queue->n_reserved + 1);

    queue->n_reserved += r == 0;
    return r;
}

void timer_release(struct timer_queue *queue)
{
    queue->n_reserved--;
}

void timer_arm_reserved(struct timer_queue *queue, struct timer *timer, usec_t at)
{
    if (at == USEC_INFINITY)
        timer_disarm(queue, timer);
    else
        (void)heap_set(&queue->heap, &timer->node, at); /* there is room */
}

int timer_arm(struct timer_queue *queue, struct timer *timer, usec_t at)
{
    const int r =
        at == USEC_INFINITY || timer_armed(timer) ? 0 : make_room(queue, queue->n_reserved + 1);

    if (r == 0)
        timer_arm_reserved(queue, timer, at);
    return r;
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
        struct timer *timer = timer_of(heap_first(&queue->heap));
        timer_disarm(queue, timer);
        timer->fn(timer, now);
    }
}
