/* SPDX-License-Identifier: MIT */
#include "starter.h"

#define STARTS_PER_TURN 4

static void starter_turn(struct loop_deferred *deferred)
{
    struct starter *starter = list_entry(deferred, struct starter, turn);
    struct list *node;

    for (int i = 0; i < STARTS_PER_TURN && (node = list_first(&starter->waiting)); i++) {
        struct starter_wish *wish = list_entry(node, struct starter_wish, link);
        list_unlink(node);
        wish->fn(wish);
    }
    if (!list_empty(&starter->waiting))
        loop_defer(starter->loop, &starter->turn);
}

void starter_init(struct starter *starter, struct loop *loop)
{
    starter->loop = loop;
    list_init(&starter->waiting);
    loop_deferred_init(&starter->turn, starter_turn);
}

void starter_deinit(struct starter *starter)
{
    loop_undefer(&starter->turn);
}

void starter_wish_init(struct starter_wish *wish, void (*fn)(struct starter_wish *wish))
{
    list_init(&wish->link);
    wish->fn = fn;
}

void starter_add(struct starter *starter, struct starter_wish *wish)
{
    if (list_linked(&wish->link))
        return;
    list_push_back(&starter->waiting, &wish->link);
    loop_defer(starter->loop, &starter->turn);
}
