/* SPDX-License-Identifier: MIT */
#include "supervisor/message/delivery/standby-actor.h"

#include "shared/base/cleanup.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/ask/ask.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/monitor.h"

static void swap_workers(struct actor *a, struct actor *b)
{
    actor_unblock(a);
    actor_unblock(b);
    SWAP(a->inbox, b->inbox);
    list_swap(&a->blobs, &b->blobs);
    mailbox_swap_worker(&a->mailbox, &b->mailbox);
    ask_swap_all(a, b);
    monitor_swap_all(a, b);
}

void standby_actor_swap(struct actor *standby, bool dying)
{
    struct actor *place = standby->place;
    const bool wait = delivery_has_unhandled(place, dying);

    delivery_set_up(place, false);
    delivery_set_up(standby, false);
    swap_workers(place, standby);
    standby->paused = place->paused;
    if (place->paused)
        delivery_pause(place);
    place->waits_for = wait ? standby : NULL;
    actor_wake(place);
    actor_wake(standby);
}
