/* SPDX-License-Identifier: MIT */
#include "supervisor/message/exchange/exchange-actor.h"

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/base/share.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/event/event.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/exchange/forward.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/router.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_SUBSCRIBER "it has no subscribers"

/* How many copies are made of a message in a turn: at most, and at least, whatever the cost of the
 * search for matching patterns. */
#define PIECE_MAX 256u
#define PIECE_MIN 16u
/* How many words of patterns can be compared, or bytes copied, in the time of one copy. */
#define EFFORT_PER_COPY 256u
#define BYTES_PER_COPY  4096u
/* Returns false without memory or descriptors. */
static bool send_copy(struct message_context *context, const struct envelope *envelope, uint64_t to)
{
    struct envelope *copy = envelope_copy(envelope);

    if (!copy) {
        ask_envelope_died(context, envelope->ask, ENOMEM, "out of memory");
        return false;
    }
    copy->id = message_context_next_id(context);
    copy->flags |= PROTOCOL_MESSAGE_EXCHANGE;
    copy->hops++;
    copy->copied = 0;
    copy->n_lost = 0;
    (void)router_send_to(context, to, copy);
    return true;
}

/* Makes the ask, if it is one, wait for `n` copies instead of one. Call it before a copy can fail.
 * Returns false if its asker has too many. */
static bool share_ask(struct message_context *context, const struct envelope *envelope, size_t n)
{
    struct ask *ask = ask_get(&context->asks, envelope->ask);

    return !ask || n <= 1 || ask_share(ask, (uint32_t)n);
}

static int refuse(struct actor *actor, struct envelope *envelope, enum dead_letter_reason reason,
                  int error, const char *text)
{
    static const uint8_t RESULTS[_DEAD_N_REASONS] = {
        [DEAD_MAILBOX_FULL] = ROUTER_E_FULL,
        [DEAD_NO_MEMORY] = ROUTER_E_MEMORY,
        [DEAD_NO_MATCH] = ROUTER_E_NO_MATCH,
        [DEAD_LOOP] = ROUTER_E_NO_MATCH,
    };
    const struct undeliverable why = {.reason = reason, .error = error, .text = text};

    return undeliverable_refuse(actor, envelope, &why, RESULTS[reason]);
}

/* Makes the message one dead letter for all copies that could not be made. */
static int refuse_copies(struct actor *actor, struct envelope *envelope, unsigned n)
{
    char text[96];

    (void)snprintf(text, sizeof(text), "%u of its copies are lost: out of memory or descriptors",
                   n);
    envelope->ask = 0; /* each copy has been counted */
    return refuse(actor, envelope, DEAD_NO_MEMORY, ENOMEM, text);
}

static uint64_t cost_of_copy(const struct envelope *envelope)
{
    return 1 + (envelope->payload.fd < 0 ? envelope->payload.size / BYTES_PER_COPY : 0);
}

/* Returns how many copies may be made in this turn. */
static size_t size_of_piece(const struct message_context *context, const struct envelope *envelope)
{
    const uint64_t n = forward_cost_left(context) / cost_of_copy(envelope);

    if (n < PIECE_MIN)
        return PIECE_MIN;
    return n < PIECE_MAX ? (size_t)n : PIECE_MAX;
}

/* Puts a message back whose remaining copies follow in a later turn, before any other message. */
static int put_back(struct message_context *context, uint64_t exchange, struct envelope *envelope)
{
    const struct undeliverable gone = {.reason = DEAD_GONE, .error = ENOENT};
    struct actor *actor = actor_get(context, exchange);

    if (!actor) { /* a copy has ended the exchange */
        undeliverable_end(context, envelope, NULL, &gone);
        return ROUTER_E_GONE;
    }
    mailbox_add_front(&actor->mailbox, envelope);
    actor_wake(actor);
    return 0;
}

static int end_copying(struct message_context *context, uint64_t exchange,
                       struct envelope *envelope)
{
    struct actor *actor = actor_get(context, exchange);

    if (envelope->n_lost > 0 && actor)
        return refuse_copies(actor, envelope, envelope->n_lost);
    envelope_free(envelope);
    return 0;
}

static int copy_to_subscribers(struct actor *actor, struct envelope *envelope)
{
    struct message_context *context = actor->context;
    const uint64_t exchange = actor->reference;
    const bool begins = envelope->copied == 0;
    struct exchange_match matches[PIECE_MAX + 1];
    size_t n_found, n;

    forward_spend(context, actor_exchange(actor)->effort / EFFORT_PER_COPY);
    n = size_of_piece(context, envelope);
    n_found = exchange_match(actor->owner, &envelope->topic, envelope->copied, matches, n + 1);
    if (n_found == 0 && begins)
        return refuse(actor, envelope, DEAD_NO_MATCH, ENOENT, NO_SUBSCRIBER);
    if (!share_ask(context, envelope, n_found))
        return refuse(actor, envelope, DEAD_MAILBOX_FULL, EBUSY,
                      "too many open asks: each copy counts");
    if (n_found < n)
        n = n_found;
    forward_spend(context, n * cost_of_copy(envelope));
    for (size_t i = 0; i < n; i++)
        envelope->n_lost += !send_copy(context, envelope, matches[i].actor);
    if (n_found > n) {
        envelope->copied = matches[n - 1].sequence;
        return put_back(context, exchange, envelope);
    }
    if (n == 0) /* the remaining subscribers have unsubscribed */
        ask_envelope_died(context, envelope->ask, ENOENT, NO_SUBSCRIBER);
    return end_copying(context, exchange, envelope);
}

static int hand_to_subscribers(struct actor *actor, struct envelope *envelope)
{
    if (envelope->hops >= FORWARD_HOPS_MAX)
        return refuse(actor, envelope, DEAD_LOOP, ELOOP, "it went through too many exchanges");
    if (!exchange_picks_one(actor->owner))
        return copy_to_subscribers(actor, envelope);
    envelope->flags |= PROTOCOL_MESSAGE_EXCHANGE;
    envelope->hops++;
    return forward_to_resolved(actor, envelope);
}

static int resolve(struct actor *actor, const struct topic *topic, struct actor **ret,
                   const char **ret_reason)
{
    uint64_t reference;

    *ret_reason = NO_SUBSCRIBER;
    if (!exchange_picks_one(actor->owner))
        return ROUTER_E_NO_MATCH;
    reference = exchange_pick(actor->owner, topic);
    if (reference == 0)
        return ROUTER_E_NO_MATCH;
    *ret = actor_get(actor->context, reference);
    return 0;
}

static void on_rerouted(void *userdata)
{
    const struct actor *actor = userdata;
    struct list *node;

    while ((node = list_first(&actor->context->routed)))
        actor_unblock(list_entry(node, struct actor, routed_link));
}

static size_t end_some(struct message_context *context, struct remains *remains, size_t max)
{
    struct exchange *exchange = list_entry(remains, struct exchange, remains);
    const size_t n = exchange_end_some(exchange, max);

    if (list_empty(&exchange->subscriptions)) {
        list_unlink(&remains->link);
        exchange_deinit(exchange);
        free(exchange);
    }
    return n;
}

/* The exchange is no longer found without its actor, but it may have a million subscriptions. */
static void free_exchange(struct actor *actor)
{
    struct message_context *context = actor->context;
    struct exchange *exchange = actor->owner;

    list_cursors_end(&exchange->cursors);
    if (exchange_picks_one(exchange))
        on_rerouted(actor);
    exchange->rerouted = NULL;
    exchange->replaced = NULL;
    exchange->userdata = NULL;
    exchange->remains.free_some = end_some;
    share_sub(exchange->share, 0, 1);
    exchange->share = share_unref(exchange->share);
    remains_add(context, &exchange->remains);
}

/* ---- permission to subscribe ---- */

static bool is_of(const char *group, const struct actor *actor)
{
    const size_t size = share_owner_size(actor->name);

    return strlen(group) == size && strncmp(group, actor->name, size) == 0;
}

/* Returns whether any group may claim the exchange: a group that was removed has no claim. */
static bool is_free(const struct actor *actor)
{
    const struct exchange *exchange = actor_exchange(actor);

    return !exchange->group || !actor_by_address(actor->context, exchange->group);
}

static int claim(struct exchange *exchange, const struct actor *actor)
{
    char *group = strndup(actor->name, share_owner_size(actor->name));

    if (!group)
        return -ENOMEM;
    free(exchange->group);
    exchange->group = group;
    return 0;
}

int exchange_actor_admit(struct actor *actor, const struct actor *subscriber)
{
    struct exchange *exchange = actor_exchange(actor);

    if (actor_is(subscriber, ACTOR_CLIENT) ||
        (exchange->group && is_of(exchange->group, subscriber)))
        return 0;
    for (char **name = exchange->admitted; name && *name; name++)
        if (is_of(*name, subscriber))
            return 0;
    if (exchange->admitted || !is_free(actor))
        return EXCHANGE_ACTOR_E_FOREIGN;
    return claim(exchange, subscriber);
}

static bool keeps(void *userdata, uint64_t reference)
{
    struct actor *actor = userdata;
    const struct actor *subscriber = actor_get(actor->context, reference);

    return subscriber && exchange_actor_admit(actor, subscriber) == 0;
}

int exchange_actor_permit(struct actor *actor, char *const *groups)
{
    struct exchange *exchange = actor_exchange(actor);
    config_strv copy = NULL;

    if (groups && strv_copy(&copy, groups) < 0)
        return -ENOMEM;
    strv_free(exchange->admitted);
    exchange->admitted = copy;
    free(TAKE_PTR(exchange->group));
    exchange_retain(exchange, keeps);
    return 0;
}

/* Reports a replacement by another group; replacements within a group are normal. */
static void on_replaced(void *userdata, uint64_t former, uint64_t successor)
{
    const struct actor *actor = userdata, *old = actor_get(actor->context, former),
                       *new = actor_get(actor->context, successor);
    struct message_context *context = actor->context;
    char group[DEATH_WORKER_MAX], message[512];

    if (!old || !new)
        return;
    (void)snprintf(group, sizeof(group), "%.*s", (int)share_owner_size(old->name), old->name);
    if (is_of(group, new) ||
        !rate_take(&context->announced, loop_now(context->loop), UNDELIVERABLE_ANNOUNCED_MAX, NULL))
        return;
    (void)snprintf(message, sizeof(message),
                   "exchange %s: the subscription of %s is replaced by %s", actor->name, old->name,
                   new->name);
    event_emit(context->events, (struct event){.level = LOG_LEVEL_NOTICE,
                                               .type = "exchange.replaced",
                                               .group = *group == '@' ? NULL : group,
                                               .message = message});
}

static uint64_t left(uint64_t max, uint64_t used)
{
    return used < max ? max - used : 0;
}

/* Returns the room that the other exchanges of its creator leave. */
static struct actor_policy share_of_creator(const struct actor *actor)
{
    struct actor_policy policy = ACTOR_POLICY_DEFAULT;
    const struct actor *creator = actor_get(actor->context, actor_exchange(actor)->creator);

    if (!creator)
        return policy;
    list_for_each_entry (other, &creator->made, struct actor, made_link)
        if (other != actor) {
            policy.mailbox_max = left(policy.mailbox_max, other->mailbox.n);
            policy.mailbox_memory_max = left(policy.mailbox_memory_max, other->mailbox.bytes);
        }
    return policy;
}

static const struct actor_class EXCHANGE_ACTOR = {
    .kind = ACTOR_EXCHANGE,
    .deliver = forward_deliver,
    .feed = forward_feed,
    .hand_on = hand_to_subscribers,
    .resolve = resolve,
    .policy = share_of_creator,
    .free_owner = free_exchange,
};

/* Takes over a reference to `share` on success. */
static int new_exchange(struct actor **ret, struct message_context *context, const char *name,
                        enum exchange_kind kind, bool declared, struct share *share)
{
    struct exchange *exchange;
    struct actor *actor;
    int r;

    if (share->shares->used[0] >= EXCHANGES_MAX)
        return ACTOR_E_TOO_MANY;
    exchange = malloc(sizeof(*exchange));
    if (!exchange)
        return -ENOMEM;
    exchange_init(exchange, kind);
    exchange->rerouted = on_rerouted;
    exchange->replaced = on_replaced;
    r = actor_new(
        &actor, context,
        &(struct actor_options){
            .class = &EXCHANGE_ACTOR, .owner = exchange, .name = name, .transient = !declared});
    if (r < 0) {
        free(exchange);
        return r;
    }
    exchange->userdata = actor;
    exchange->share = share;
    share_add(share, 0, 1);
    r = actor_register(actor, name);
    if (r == 0) {
        *ret = actor;
        return 0;
    }
    share->references++; /* the caller's */
    actor_end(actor, "it could not be registered");
    return r;
}

/* `creator` NULL = none. */
static int new_shared(struct actor **ret, struct message_context *context, const char *name,
                      enum exchange_kind kind, bool declared, const struct actor *creator,
                      bool bounded)
{
    const char *owner = creator ? creator->name : "";
    struct share *share = share_get(&context->exchange_shares, owner, share_owner_size(owner));
    int r = -ENOMEM;

    if (share)
        r = bounded && !share_permits(share, 0, 1, EXCHANGES_MAX)
                ? ACTOR_E_TOO_MANY
                : new_exchange(ret, context, name, kind, declared, share);
    if (r != 0)
        share_unref(share);
    return r;
}

int exchange_actor_new(struct actor **ret, struct message_context *context, const char *name,
                       enum exchange_kind kind, bool declared)
{
    return new_shared(ret, context, name, kind, declared, NULL, false);
}

static int make(struct actor **ret, struct actor *creator, const char *name,
                enum exchange_kind kind, bool bounded)
{
    unsigned n = 0;
    int r;

    list_for_each (node, &creator->made)
        n++;
    if (n >= EXCHANGES_PER_ACTOR_MAX)
        return ACTOR_E_TOO_MANY;
    r = new_shared(ret, creator->context, name, kind, false, creator, bounded);
    if (r != 0)
        return r;
    actor_exchange(*ret)->creator = creator->reference;
    list_push_back(&creator->made, &(*ret)->made_link);
    /* Best effort: without memory, the first subscriber's group claims the exchange. */
    if (!actor_is(creator, ACTOR_CLIENT))
        (void)claim(actor_exchange(*ret), creator);
    return 0;
}

int exchange_actor_make(struct actor **ret, struct actor *creator, const char *name,
                        enum exchange_kind kind)
{
    return make(ret, creator, name, kind, true);
}

int exchange_actor_restore(struct actor **ret, struct actor *creator, const char *name,
                           enum exchange_kind kind)
{
    return make(ret, creator, name, kind, false);
}

void exchange_actor_disown(struct actor *actor)
{
    actor_exchange(actor)->creator = 0;
    list_unlink(&actor->made_link);
}
