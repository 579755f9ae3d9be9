/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "supervisor/channel/endpoint.h"
#include "supervisor/channel/held-blob.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void on_turn(struct loop_deferred *deferred)
{
    struct actor *actor = list_entry(deferred, struct actor, feed);

    actor->class->feed(actor);
    if (!list_empty(&actor->blocked) && actor_has_room(actor, 0))
        actor_unblock_all(actor);
}

/* Anybody may choose the key of a cell, and with it a part of a name: it must not have the digest
 * of another name, which would then get another reference after a crash. */
static uint64_t hash_name(const char *name)
{
    return digest_strong(name, strlen(name)) & INT64_MAX;
}

/* The word and the bit of message_context.retired. */
static uint64_t *retired_word(struct message_context *context, uint64_t hash, uint64_t *ret_bit)
{
    const uint64_t n = hash_mix(hash) % (64 * ELEMENTS(context->retired));

    *ret_bit = UINT64_C(1) << (n % 64);
    return &context->retired[n / 64];
}

static bool is_retired(struct message_context *context, uint64_t hash)
{
    uint64_t bit;

    return *retired_word(context, hash, &bit) & bit;
}

void actor_retire_name(struct message_context *context, const char *name)
{
    uint64_t bit, *word = retired_word(context, hash_name(name), &bit);

    *word |= bit;
}

/* Returns the actor's reference in the last supervisor; 0 = it did not exist. */
static uint64_t inherit(struct actor *actor)
{
    struct actor_row former;

    if (!actor_row_take(&actor->context->inherited, actor->name, &former))
        return 0;
    if (former.exchange != actor_is(actor, ACTOR_EXCHANGE)) {
        actor_retire_name(actor->context, actor->name);
        return 0;
    }
    actor->counters = former.counters;
    return former.reference;
}

/* A standby has the name of its place, but its own reference. */
static void give_reference(struct actor *actor, bool transient)
{
    struct message_context *context = actor->context;
    uint64_t reference = inherit(actor);

    if (reference == 0 && !transient && !is_retired(context, hash_name(actor->name)))
        reference = hash_name(actor->name);
    while (reference == 0 || index_find(&context->references, reference))
        reference = hash_mix(hash_secret() + ++context->n_transient) & INT64_MAX;
    actor->reference = reference;
    index_add(&context->references, &actor->by_reference, reference);
}

struct actor *actor_get(struct message_context *context, uint64_t reference)
{
    struct index_entry *entry;

    if (context->found && context->found->reference == reference)
        return context->found;
    entry = index_find(&context->references, reference);
    if (!entry)
        return NULL;
    return context->found = list_entry(entry, struct actor, by_reference);
}

int actor_new(struct actor **ret, struct message_context *context,
              const struct actor_options *options)
{
    struct actor *actor = calloc(1, sizeof(*actor));
    int r = -ENOMEM;

    if (!actor)
        return r;
    struct list *lists[] = {&actor->blobs,        &actor->pool_link, &actor->observers,
                            &actor->monitoring,   &actor->asks,      &actor->names,
                            &actor->made,         &actor->made_link, &actor->blocked,
                            &actor->blocked_link, &actor->standbys,  &actor->standby_link,
                            &actor->routed_link};
    for (size_t i = 0; i < ELEMENTS(lists); i++)
        list_init(lists[i]);
    actor->context = context;
    actor->class = options->class;
    actor->owner = options->owner;
    actor->pool = options->pool;
    actor->log = options->log;
    actor->config = options->config;
    mailbox_init(&actor->mailbox);
    loop_deferred_init(&actor->feed, on_turn);
    actor->name = strdup(options->name);
    if (actor->name)
        r = handle_table_add(&context->actors, actor, &actor->handle);
    if (r < 0) {
        free(actor->name);
        free(actor);
        return r;
    }
    give_reference(actor, options->transient);
    exchange_subscriber_init(&actor->subscriptions, actor->reference);
    *ret = actor;
    return 0;
}

void actor_free(struct actor *actor)
{
    assert(actor->n_asks == 0 && mailbox_idle(&actor->mailbox) && list_empty(&actor->names));
    loop_undefer(&actor->feed);
    mailbox_deinit(&actor->mailbox);
    index_deinit(&actor->asks_by_cookie);
    index_deinit(&actor->monitoring_by_reference);
    list_unlink(&actor->pool_link);
    list_unlink(&actor->made_link);
    list_unlink(&actor->made);
    list_until_empty (standby, &actor->standbys, struct actor, standby_link)
        actor_set_place(standby, NULL);
    actor_set_place(actor, NULL);
    handle_table_remove(&actor->context->actors, actor->handle);
    index_remove(&actor->context->references, &actor->by_reference);
    actor->context->found = NULL;
    actor_retire_name(actor->context, actor->name);
    if (actor->class->free_owner)
        actor->class->free_owner(actor);
    free(actor->name);
    free(actor);
}

const char *actor_kind_to_string(enum actor_kind kind)
{
    static const char *const KINDS[] = {
        [ACTOR_SLOT] = "slot",         [ACTOR_POOL] = "pool",     [ACTOR_GROUP] = "group",
        [ACTOR_EXCHANGE] = "exchange", [ACTOR_CLIENT] = "client",
    };

    _Static_assert(ELEMENTS(KINDS) == _ACTOR_N_KINDS, "a new kind needs a name");
    return KINDS[kind];
}

const char *actor_name_of(struct message_context *context, uint64_t reference)
{
    const struct actor *actor = actor_get(context, reference);

    if (actor)
        return actor->name;
    return reference == 0 ? "" : "(gone)";
}

struct actor *actor_self(struct actor *actor)
{
    return actor->place ? actor->place : actor;
}

const struct actor *actor_pool_of(const struct actor *actor)
{
    return actor_is(actor, ACTOR_POOL) ? actor : actor->pool;
}

void actor_set_place(struct actor *actor, struct actor *place)
{
    list_unlink(&actor->standby_link);
    actor->place = place;
    if (place)
        list_push_back(&place->standbys, &actor->standby_link);
}

void actor_release_place(struct actor *standby)
{
    struct actor *place = standby->place;

    if (!place || place->waits_for != standby)
        return;
    place->waits_for = NULL;
    actor_wake(place);
}

struct actor_policy actor_policy(const struct actor *actor)
{
    const struct config_group *config = actor->config;

    if (!config && actor->class->policy)
        return actor->class->policy(actor);
    if (!config)
        return (struct actor_policy)ACTOR_POLICY_DEFAULT;
    return (struct actor_policy){
        .mailbox_max = config->mailbox_max,
        .mailbox_memory_max = config->mailbox_memory_max,
        .overflow = config->overflow,
        .on_crash = config->on_crash,
        .message_retries = config->message_retries,
    };
}

bool actor_has_room(const struct actor *actor, uint64_t bytes)
{
    const struct actor_policy policy = actor_policy(actor);

    return mailbox_has_room(&actor->mailbox, NULL, bytes, policy.mailbox_max,
                            policy.mailbox_memory_max);
}

bool actor_answer_fits(const struct actor *actor, uint64_t bytes)
{
    const uint64_t max = actor_policy(actor).mailbox_memory_max;
    const uint64_t used = actor->mailbox.answer_bytes;

    if (used == 0)
        return true;
    return bytes <= max && used <= max - bytes &&
           (!actor->inbox.endpoint || blob_share_has_room(actor->inbox.endpoint->blobs, bytes));
}

bool actor_takes_messages(const struct actor *actor)
{
    return actor->up && !actor->paused && !actor->waits_for;
}

bool actor_is_direct(const struct actor *actor)
{
    if (!actor_takes_messages(actor) || !mailbox_idle(&actor->mailbox))
        return false;
    /* Messages of the inbox that its worker stashes also count. */
    return actor->mailbox.n_stashed == 0 || actor_has_room(actor, 0);
}

void actor_wake(struct actor *actor)
{
    loop_defer(actor->context->loop, &actor->feed);
}

void actor_answer(struct actor *actor, struct envelope *envelope)
{
    if (!actor->inbox.endpoint) {
        envelope_free(envelope); /* the asker is gone */
        return;
    }
    envelope->charged = actor->inbox.endpoint->blobs;
    envelope->charge = envelope_bytes(envelope);
    if (envelope->charged)
        blob_share_charge(envelope->charged, envelope->charge);
    mailbox_add_answer(&actor->mailbox, envelope);
    actor_wake(actor);
}

int actor_answer_record(struct actor *actor, uint16_t kind, const void *body, int size)
{
    struct envelope *envelope = envelope_new_answer(kind, body, (uint32_t)size);

    if (!envelope)
        return -ENOMEM;
    envelope->id = message_context_next_id(actor->context);
    actor_answer(actor, envelope);
    return 0;
}

void actor_block(struct actor *sender, struct actor *to, bool routed)
{
    list_unlink(&sender->blocked_link);
    list_unlink(&sender->routed_link);
    list_push_back(&to->blocked, &sender->blocked_link);
    if (routed)
        list_push_back(&sender->context->routed, &sender->routed_link);
}

void actor_unblock(struct actor *sender)
{
    if (!list_linked(&sender->blocked_link))
        return;
    list_unlink(&sender->blocked_link);
    list_unlink(&sender->routed_link);
    if (sender->inbox.endpoint)
        endpoint_resume(sender->inbox.endpoint);
    else
        actor_wake(sender);
}

void actor_unblock_all(struct actor *to)
{
    list_until_empty (actor, &to->blocked, struct actor, blocked_link)
        actor_unblock(actor);
}
