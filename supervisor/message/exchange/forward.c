/* SPDX-License-Identifier: MIT */
#include "supervisor/message/exchange/forward.h"

#include "supervisor/message/actor.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/router.h"
#include <errno.h>

/* Copies per turn of waiting messages: a fraction of a millisecond. */
#define COPIES_PER_TURN 250

static bool is_open(const struct actor *actor)
{
    return !actor->paused && mailbox_idle(&actor->mailbox);
}

int forward_deliver(struct actor *actor, struct envelope *envelope)
{
    return is_open(actor) ? actor->class->hand_on(actor, envelope)
                          : delivery_enqueue(actor, envelope);
}

/* The actor in whose mailbox such a message for `to` would wait; NULL = none, or several. */
static struct actor *find_mailbox(struct actor *to, const struct topic *topic)
{
    const char *reason;

    for (unsigned hops = 0; to->class->resolve && is_open(to); hops++)
        if (hops > FORWARD_HOPS_MAX || to->class->resolve(to, topic, &to, &reason) != 0)
            return NULL;
    return to;
}

bool forward_must_wait(struct actor *sender, struct actor *to, const struct topic *topic,
                       uint64_t bytes)
{
    struct actor *last = find_mailbox(to, topic);

    if (!last || actor_policy(last).overflow != CONFIG_OVERFLOW_BLOCK ||
        actor_has_room(last, bytes))
        return false;
    actor_block(sender, last, last != to || actor_exchange(sender));
    return true;
}

/* Whether a waiting message has no room at its one recipient. */
static bool must_wait_on(struct actor *actor, const struct envelope *envelope)
{
    const char *reason;
    struct actor *to;

    return actor->class->resolve &&
           actor->class->resolve(actor, &envelope->topic, &to, &reason) == 0 &&
           forward_must_wait(actor, to, &envelope->topic, envelope_bytes(envelope));
}

void forward_feed(struct actor *actor)
{
    const struct exchange *exchange = actor_exchange(actor);
    const size_t copies = 1 + (exchange ? exchange->n_subscriptions : 0);
    struct envelope *envelope;

    for (size_t n = 0; !actor->paused && (envelope = mailbox_oldest(&actor->mailbox));
         n += copies) {
        if (n >= COPIES_PER_TURN) {
            actor_wake(actor);
            return;
        }
        if (must_wait_on(actor, envelope))
            return;
        mailbox_take(&actor->mailbox, envelope);
        (void)actor->class->hand_on(actor, envelope);
    }
}

int forward_to_resolved(struct actor *actor, struct envelope *envelope)
{
    struct undeliverable why = {.reason = DEAD_GONE, .error = ENOENT};
    struct actor *to;
    int r = actor->class->resolve(actor, &envelope->topic, &to, &why.text);

    if (r == 0)
        return router_send(to, envelope);
    if (r == ROUTER_E_NO_MATCH)
        why.reason = DEAD_NO_MATCH;
    if (r < 0) {
        why.reason = DEAD_NO_MEMORY;
        why.error = -r;
        r = ROUTER_E_MEMORY;
    }
    return undeliverable_refuse(actor, envelope, &why, r);
}
