/* SPDX-License-Identifier: MIT */
#include "supervisor/group/fault-batch.h"

#include <errno.h>

static void start(struct fault_batch *batch, struct loop *loop);

void fault_batch_init(struct fault_batch *batch,
                      int (*want)(struct fault_place *place, struct names *names),
                      void (*done)(struct fault_place *place, const struct names *names, bool late))
{
    *batch = (struct fault_batch){.want = want, .done = done};
    list_init(&batch->idle);
    list_init(&batch->due);
    list_init(&batch->looked_up);
}

static void move_to(struct fault_place *place, struct list *list)
{
    list_unlink(&place->link);
    list_push_back(list, &place->link);
}

bool fault_batch_is_late(const struct names *names)
{
    for (size_t i = 0; i < names->n_names; i++)
        if (names->names[i].error == ETIMEDOUT)
            return true;
    return false;
}

/* Tells all; each may start or end others. */
static void finish(struct fault_batch *batch, struct loop *loop)
{
    const bool late = fault_batch_is_late(&batch->lookup.names);
    struct list *node;

    while ((node = list_first(&batch->looked_up))) {
        struct fault_place *place = list_entry(node, struct fault_place, link);

        list_unlink(node);
        place->begun = false;
        place->batch = NULL;
        batch->done(place, &batch->lookup.names, late);
    }
    lookup_deinit(&batch->lookup);
    batch->busy = false;
    if (!list_empty(&batch->due))
        start(batch, loop);
}

static void on_lookup_done(struct lookup *lookup)
{
    finish(list_entry(lookup, struct fault_batch, lookup), lookup->loop);
}

static void take_along(struct fault_batch *batch, struct loop *loop)
{
    const usec_t until = usec_add(loop_now(loop), FAULT_BATCH_AHEAD);

    list_for_each_safe (node, &batch->idle) {
        struct fault_place *place = list_entry(node, struct fault_place, link);

        if (timer_at(&place->timer) > until)
            continue;
        timer_disarm(loop_timers(loop), &place->timer);
        move_to(place, &batch->due);
    }
}

static void start(struct fault_batch *batch, struct loop *loop)
{
    int r = 0;

    batch->busy = true;
    take_along(batch, loop);
    lookup_init(&batch->lookup, loop, on_lookup_done);
    for (unsigned n = 0; n < FAULT_BATCH_MAX && r == 0 && !list_empty(&batch->due); n++) {
        struct fault_place *place = list_entry(list_first(&batch->due), struct fault_place, link);

        move_to(place, &batch->looked_up);
        place->begun = true;
        r = batch->want(place, &batch->lookup.names);
    }
    if (r == 0)
        r = lookup_start(&batch->lookup);
    if (r != 0)
        finish(batch, loop);
}

static void on_timer(struct timer *timer, usec_t now)
{
    struct fault_place *place = list_entry(timer, struct fault_place, timer);
    struct fault_batch *batch = place->batch;

    (void)now;
    move_to(place, &batch->due);
    if (!batch->busy)
        start(batch, place->loop);
}

int fault_batch_wait(struct fault_batch *batch, struct fault_place *place, struct loop *loop,
                     usec_t at)
{
    place->batch = batch;
    place->loop = loop;
    list_init(&place->link);
    list_push_back(&batch->idle, &place->link);
    timer_init(&place->timer, on_timer);
    return timer_arm(loop_timers(loop), &place->timer, at);
}

void fault_batch_leave(struct fault_place *place)
{
    struct fault_batch *batch = place->batch;

    if (!batch)
        return;
    timer_disarm(loop_timers(place->loop), &place->timer);
    list_unlink(&place->link);
    place->batch = NULL;
    place->begun = false;
    if (batch->busy && list_empty(&batch->looked_up) && list_empty(&batch->due) &&
        list_empty(&batch->idle)) {
        lookup_deinit(&batch->lookup);
        batch->busy = false;
    }
}
