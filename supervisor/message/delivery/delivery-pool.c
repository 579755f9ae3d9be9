/* SPDX-License-Identifier: MIT */

/* Pools: a message goes to the slot that has the fewest. */

#include "supervisor/message/delivery/delivery-private.h"

int delivery_to_pool(struct actor *actor, struct envelope *envelope)
{
    struct actor *slot = NULL;

    envelope->flags |= PROTOCOL_MESSAGE_POOL;
    if (!actor->paused && mailbox_idle(&actor->mailbox))
        slot = least_loaded_pick(actor->members);
    if (slot && delivery_send(slot, envelope) == 0)
        return 0;
    return delivery_enqueue(actor, envelope);
}

void delivery_feed_pool(struct actor *actor)
{
    struct envelope *envelope;
    struct actor *slot;

    while (!actor->paused && (envelope = mailbox_oldest(&actor->mailbox)) &&
           (slot = least_loaded_pick(actor->members))) {
        envelope->flags |= PROTOCOL_MESSAGE_POOL;
        if (!delivery_feed_one(actor, slot, envelope))
            delivery_review_in_pool(slot);
    }
}
