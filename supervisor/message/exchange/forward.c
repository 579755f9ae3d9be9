/* SPDX-License-Identifier: MIT */
#include "supervisor/message/exchange/forward.h"

#include "supervisor/message/actor.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/router.h"
#include <errno.h>

/* Bounds the work of all exchanges together in a turn, once for messages that arrive and once for
 * messages that waited: a fraction of a millisecond each. A copy costs 1, and more for its bytes.
 */
#define COST_PER_TURN 250

static uint64_t cost_left(const struct message_context *context, struct forward_budget *budget)
{
    if (budget->turn != loop_now(context->loop))
        *budget = (struct forward_budget){.turn = loop_now(context->loop)};
    return budget->used < COST_PER_TURN ? COST_PER_TURN - budget->used : 0;
}

uint64_t forward_cost_left(const struct message_context *context)
{
    return cost_left(context, context->spending);
}

void forward_spend(struct message_context *context, uint64_t cost)
{
    context->spending->used += cost;
}

static int hand_on(struct actor *actor, struct envelope *envelope, struct forward_budget *budget)
{
    struct message_context *context = actor->context;
    struct forward_budget *before = context->spending; /* of the exchange that this copy is from */
    int r;

    context->spending = budget;
    r = actor->class->hand_on(actor, envelope);
    context->spending = before;
    return r;
}

static bool copies(const struct actor *actor)
{
    const struct exchange *exchange = actor_exchange(actor);

    return exchange && !exchange_picks_one(exchange);
}

static bool is_open(const struct actor *actor)
{
    return !actor->paused && mailbox_idle(&actor->mailbox);
}

int forward_deliver(struct actor *actor, struct envelope *envelope)
{
    struct forward_budget *budget = &actor->context->at_once;

    if (!is_open(actor) || (copies(actor) && cost_left(actor->context, budget) == 0))
        return delivery_enqueue(actor, envelope);
    return hand_on(actor, envelope, budget);
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

/* While messages wait to be copied, further senders also wait, so that the mailbox does not fill.
 */
bool forward_must_wait_for_copies(struct actor *sender, struct actor *to)
{
    if (!copies(to) || to->paused || mailbox_idle(&to->mailbox))
        return false;
    actor_block(sender, to, false);
    return true;
}

bool forward_must_wait(struct actor *sender, struct actor *to, const struct topic *topic,
                       uint64_t bytes)
{
    struct actor *last = find_mailbox(to, topic);

    if (!last)
        return false;
    if (forward_must_wait_for_copies(sender, last))
        return true;
    if (actor_policy(last).overflow != CONFIG_OVERFLOW_BLOCK || actor_has_room(last, bytes))
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
    struct forward_budget *budget = &actor->context->fed;
    struct envelope *envelope;

    while (!actor->paused && (envelope = mailbox_oldest(&actor->mailbox))) {
        if (cost_left(actor->context, budget) == 0) {
            actor_wake(actor);
            return;
        }
        budget->used++;
        if (must_wait_on(actor, envelope))
            return;
        mailbox_take(&actor->mailbox, envelope);
        (void)hand_on(actor, envelope, budget);
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
