/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/pacer.h"

#define PER_TURN 4

static void pacer_turn(struct loop_deferred *deferred)
{
    struct pacer *pacer = list_entry(deferred, struct pacer, turn);
    struct list *node;

    if (pacer->held)
        return;
    if (pacer->patient && !pacer->waited) {
        pacer->waited = true;
        loop_defer(pacer->loop, &pacer->turn);
        return;
    }
    for (int i = 0; i < PER_TURN && !pacer->held && (node = list_first(&pacer->waiting)); i++) {
        struct pacer_wish *wish = list_entry(node, struct pacer_wish, link);
        list_unlink(node);
        wish->fn(wish);
    }
    pacer->waited = !list_empty(&pacer->waiting);
    if (pacer->waited)
        loop_defer(pacer->loop, &pacer->turn);
}

void pacer_init(struct pacer *pacer, struct loop *loop)
{
    *pacer = (struct pacer){.loop = loop};
    list_init(&pacer->waiting);
    loop_deferred_init(&pacer->turn, pacer_turn);
}

void pacer_deinit(struct pacer *pacer)
{
    loop_undefer(&pacer->turn);
}

void pacer_hold(struct pacer *pacer, bool hold)
{
    if (pacer->held == hold)
        return;
    pacer->held = hold;
    if (!hold && !list_empty(&pacer->waiting))
        loop_defer(pacer->loop, &pacer->turn);
}

void pacer_wish_init(struct pacer_wish *wish, void (*fn)(struct pacer_wish *wish))
{
    list_init(&wish->link);
    wish->fn = fn;
}

void pacer_add(struct pacer *pacer, struct pacer_wish *wish)
{
    if (list_linked(&wish->link))
        return;
    list_push_back(&pacer->waiting, &wish->link);
    loop_defer(pacer->loop, &pacer->turn);
}
