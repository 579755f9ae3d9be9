/* SPDX-License-Identifier: MIT */
/* The hot set of the loop. */
#include "supervisor/loop/loop-private.h"

/* Busy turns after which a source that had no part in them is cooled. Polling it costs a read of
 * one cache line per turn; cooling and heating it again costs a system call each. */
#define QUIET_TURNS 64

void loop_hot_init(struct loop_hot *hot, bool (*poll_fn)(struct loop_hot *),
                   bool (*cool_fn)(struct loop_hot *))
{
    list_init(&hot->link);
    hot->poll = poll_fn;
    hot->cool = cool_fn;
    hot->worked = 0;
    hot->patience = SPIN_PATIENCE_MAX;
}

void loop_heat(struct loop *loop, struct loop_hot *hot)
{
    hot->worked = loop->n_busy_turns;
    if (!list_linked(&hot->link))
        list_push_back(&loop->hot, &hot->link);
}

void loop_unheat(struct loop *loop, struct loop_hot *hot)
{
    list_unlink(&hot->link);
    if (loop->current_hot == hot)
        loop->current_hot = NULL;
    if (loop->told == hot)
        loop->told = NULL;
    if (loop->asking == hot)
        loop->asking = NULL;
}

void loop_told(struct loop *loop, struct loop_hot *hot)
{
    loop->told = hot;
}

bool loop_run_hot(struct loop *loop)
{
    bool worked = false;
    loop_take_all(&loop->hot_pass, &loop->hot);
    while (!list_empty(&loop->hot_pass)) {
        struct loop_hot *hot = list_entry(list_first(&loop->hot_pass), struct loop_hot, link);
        list_unlink(&hot->link);
        list_push_back(&loop->hot, &hot->link);
        loop->current_hot = hot;
        bool found = hot->poll(hot);
        worked |= found;
        /* NULL if poll() has unheated the source, which may be freed. */
        if (found && loop->current_hot)
            hot->worked = loop->n_busy_turns;
    }
    loop->current_hot = NULL;
    return worked;
}

void loop_cool_hot(struct loop *loop, bool all)
{
    loop_take_all(&loop->hot_pass, &loop->hot);
    while (!list_empty(&loop->hot_pass)) {
        struct loop_hot *hot = list_entry(list_first(&loop->hot_pass), struct loop_hot, link);
        list_unlink(&hot->link);
        list_push_back(&loop->hot, &hot->link);
        if (!all && loop->n_busy_turns - hot->worked < QUIET_TURNS)
            continue;
        loop->current_hot = hot;
        bool cooled = hot->cool(hot);
        if (!loop->current_hot)
            continue;
        if (cooled)
            list_unlink(&hot->link);
        else
            hot->worked = loop->n_busy_turns;
    }
    loop->current_hot = NULL;
}
