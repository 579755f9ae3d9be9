/* SPDX-License-Identifier: MIT */
#include "supervisor/message/stand-in.h"

#include "supervisor/channel/endpoint.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/ask.h"
#include "supervisor/message/delivery.h"
#include "supervisor/message/monitor.h"
#include "supervisor/message/router.h"
#include <string.h>

#define SWAP(a, b)                                                                                 \
    do {                                                                                           \
        __typeof__(a) swapped = (a);                                                               \
        (a) = (b);                                                                                 \
        (b) = swapped;                                                                             \
    } while (0)

void stand_in_set(struct actor *actor, struct actor *place)
{
    list_unlink(&actor->stand_in_link);
    actor->identity = place;
    if (place)
        list_push_back(&place->stand_ins, &actor->stand_in_link);
}

void stand_in_release(struct actor *stand_in)
{
    struct actor *place = stand_in->identity;

    if (!place || place->waits_for != stand_in)
        return;
    place->waits_for = NULL;
    delivery_wake(place);
}

void stand_in_forget_place(struct actor *place)
{
    struct list *node;

    place->waits_for = NULL;
    while ((node = list_first(&place->stand_ins)))
        stand_in_set(list_entry(node, struct actor, stand_in_link), NULL);
}

static void swap_recent(struct actor *a, struct actor *b)
{
    uint32_t recent[sizeof(a->recent) / sizeof(a->recent[0])];

    memcpy(recent, a->recent, sizeof(recent));
    memcpy(a->recent, b->recent, sizeof(recent));
    memcpy(b->recent, recent, sizeof(recent));
    SWAP(a->n_recent, b->n_recent);
}

/* A sender that waits for room somewhere tries again. */
static void try_again(struct actor *actor)
{
    if (!list_linked(&actor->blocked_link))
        return;
    list_unlink(&actor->blocked_link);
    endpoint_resume(actor->endpoint);
}

static void swap_workers(struct actor *a, struct actor *b)
{
    try_again(a);
    try_again(b);
    SWAP(a->endpoint, b->endpoint);
    SWAP(a->full, b->full);
    SWAP(a->held_up, b->held_up);
    SWAP(a->owes, b->owes);
    SWAP(a->control, b->control);
    SWAP(a->n_inbox, b->n_inbox);
    SWAP(a->n_pooled, b->n_pooled);
    SWAP(a->settled, b->settled);
    list_swap(&a->blobs, &b->blobs);
    swap_recent(a, b);
    mailbox_swap_worker(&a->mailbox, &b->mailbox);
    ask_swap_all(a, b);
    monitor_swap_all(a, b);
}

void stand_in_swap(struct actor *stand_in, bool dying)
{
    struct actor *place = stand_in->identity;
    const bool wait = delivery_has_unhandled(place, dying);

    delivery_set_up(place, false);
    delivery_set_up(stand_in, false);
    swap_workers(place, stand_in);
    stand_in->paused = place->paused;
    if (place->paused)
        router_pause(place);
    place->waits_for = wait ? stand_in : NULL;
    delivery_wake(place);
    delivery_wake(stand_in);
}
