/* SPDX-License-Identifier: MIT */
#include "supervisor/message/router.h"

#include "supervisor/channel/endpoint.h"
#include "supervisor/context.h"
#include "supervisor/group/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/message/delivery.h"
#include "supervisor/message/message-log.h"
#include "supervisor/pool/slot.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Exchanges one message may go through: beyond that it is taken to go round. */
#define ROUTER_HOPS_MAX 8u

/* ---- where it goes ---- */

static int refuse(struct context *context, struct envelope *envelope, const struct actor *to,
                  const struct router_verdict *verdict, int result)
{
    router_undeliverable(context, envelope, to, verdict);
    return result;
}

static int refuse_gone(struct context *context, struct envelope *envelope, const struct actor *to,
                       const char *text)
{
    const struct router_verdict verdict = {.reason = DEAD_GONE, .error = ENOENT, .text = text};

    return refuse(context, envelope, to, &verdict, ROUTER_E_GONE);
}

bool router_has_room(const struct actor *to, uint64_t bytes)
{
    const struct actor_policy policy = actor_policy(to);

    return mailbox_has_room(&to->mailbox, bytes, policy.mailbox_max, policy.mailbox_memory_max);
}

bool router_answer_fits(const struct actor *asker, uint64_t bytes)
{
    const uint64_t max = actor_policy(asker).mailbox_memory_max;
    const uint64_t used = asker->mailbox.answer_bytes;

    return used == 0 || (bytes <= max && used <= max - bytes);
}

static void drop_oldest(struct actor *to, uint64_t bytes)
{
    const struct router_verdict verdict = {
        .reason = DEAD_DROPPED, .error = ENOBUFS, .text = "dropped for a later one"};
    struct envelope *oldest;

    while (!router_has_room(to, bytes) && (oldest = mailbox_oldest(&to->mailbox))) {
        mailbox_take(&to->mailbox, oldest);
        router_undeliverable(to->context, oldest, to, &verdict);
    }
}

/* Into its mailbox, by its policy. */
static int enqueue(struct actor *to, struct envelope *envelope)
{
    const struct router_verdict full = {
        .reason = DEAD_MAILBOX_FULL, .error = ENOBUFS, .text = "the mailbox is full"};
    const uint64_t bytes = envelope_bytes(envelope);

    if (actor_policy(to).overflow == CONFIG_OVERFLOW_DROP_OLDEST)
        drop_oldest(to, bytes);
    if (!router_has_room(to, bytes))
        return refuse(to->context, envelope, to, &full, ROUTER_E_FULL);
    mailbox_add(&to->mailbox, envelope);
    if (!to->full)
        delivery_wake(to);
    return 0;
}

static int send_to_inbox(struct actor *to, struct envelope *envelope)
{
    if (delivery_is_direct(to) && !to->full && delivery_send(to, envelope) == 0)
        return 0;
    return enqueue(to, envelope);
}

static int send_to_pool(struct actor *to, struct envelope *envelope)
{
    struct actor *slot = NULL;

    envelope->flags |= PROTOCOL_MESSAGE_POOL;
    if (!to->paused && mailbox_idle(&to->mailbox))
        slot = least_loaded_pick(&to->pool, to->cell->config->batch_max);
    if (slot && delivery_send(slot, envelope) == 0)
        return 0;
    return enqueue(to, envelope);
}

bool router_is_stopped(const struct actor *actor)
{
    switch (actor->kind) {
    case ACTOR_SLOT:
        return slot_is_down(actor->slot);
    case ACTOR_POOL:
        return census_down(&actor->cell->pool.census);
    case ACTOR_GROUP: /* cells come with their first message */
        return !actor->group->wanted;
    default:
        return false;
    }
}

bool router_is_open(const struct actor *actor)
{
    return !actor->paused && mailbox_idle(&actor->mailbox);
}

struct actor *router_cell_of(const struct actor *group, const char *key, uint32_t key_size)
{
    struct cell *cell;

    return group_take_cell(group->group, key, key_size, &cell) == 0 ? cell->pool.actor : NULL;
}

static int refuse_cell(struct actor *to, struct envelope *envelope, int r)
{
    struct router_verdict verdict = {.reason = DEAD_GONE, .error = ENOENT, .text = "no such cell"};
    int result = ROUTER_E_GONE;

    if (r == CELL_E_NO_KEY || r == CELL_E_BAD_KEY) {
        verdict.text = r == CELL_E_NO_KEY
                           ? "the group has Cells=by-key, and the message no routing key"
                           : "its routing key cannot name a cell";
        result = ROUTER_E_NO_KEY;
    } else if (r == CELL_E_TOO_MANY) {
        verdict.text = "CellsMax= is reached";
        result = ROUTER_E_CELLS;
    } else if (r < 0) {
        verdict =
            (struct router_verdict){.reason = DEAD_NO_MEMORY, .error = -r, .text = strerror(-r)};
        result = ROUTER_E_MEMORY;
    }
    return refuse(to->context, envelope, to, &verdict, result);
}

static int hand_to_cell(struct actor *to, struct envelope *envelope)
{
    struct cell *cell;
    int r;

    r = group_take_cell(to->group, envelope->topic.key, envelope->topic.key_size, &cell);
    return r == 0 ? router_send(cell->pool.actor, envelope) : refuse_cell(to, envelope, r);
}

/* ---- exchanges ---- */

struct fan_out {
    struct context *context;
    struct envelope *envelope;
    unsigned n_lost;
};

static void fan_out_one(void *userdata, uint64_t reference)
{
    struct fan_out *out = userdata;
    struct envelope *copy = envelope_copy(out->envelope);
    struct actor *to = actor_get(&out->context->actors, reference);

    if (!copy) {
        out->n_lost++;
        ask_envelope_died(out->context, out->envelope->ask, ENOMEM, "out of memory");
        return;
    }
    copy->id = actor_next_id(out->context);
    copy->flags |= PROTOCOL_MESSAGE_EXCHANGE;
    copy->hops++;
    if (!to)
        (void)refuse_gone(out->context, copy, NULL, NULL);
    else
        (void)router_send(to, copy);
}

static void count_copy(void *userdata, uint64_t reference)
{
    (void)reference;
    ++*(unsigned *)userdata;
}

/* All copies are on their way before the first can fail the ask. 0, -EBUSY or -ENOMEM. */
static int share_ask(struct actor *exchange, const struct envelope *envelope)
{
    struct ask *ask = ask_get(&exchange->context->asks, envelope->ask);
    unsigned n = 0;

    if (!ask || exchange_route(exchange->exchange, &envelope->topic, count_copy, &n) <= 0 || n == 1)
        return 0;
    return ask_share(ask, n);
}

/* The message itself is the dead letter for all copies that could not be made. */
static int refuse_copies(struct actor *to, struct envelope *envelope, unsigned n)
{
    char text[96];
    const struct router_verdict verdict = {.reason = DEAD_NO_MEMORY, .error = ENOMEM, .text = text};

    (void)snprintf(text, sizeof(text), "%u of its copies are lost: out of memory or descriptors",
                   n);
    envelope->ask = 0; /* each copy has been counted */
    return refuse(to->context, envelope, to, &verdict, ROUTER_E_MEMORY);
}

static int hand_to_subscribers(struct actor *to, struct envelope *envelope)
{
    const struct router_verdict no_memory = {
        .reason = DEAD_NO_MEMORY, .error = ENOMEM, .text = strerror(ENOMEM)};
    struct fan_out out = {.context = to->context, .envelope = envelope};
    const struct router_verdict no_match = {
        .reason = DEAD_NO_MATCH, .error = ENOENT, .text = "nobody has subscribed to it"};
    const struct router_verdict round = {
        .reason = DEAD_LOOP, .error = ELOOP, .text = "it went through too many exchanges"};
    int r;

    if (envelope->hops >= ROUTER_HOPS_MAX)
        return refuse(to->context, envelope, to, &round, ROUTER_E_NO_MATCH);
    r = share_ask(to, envelope);
    if (r < 0) {
        const struct router_verdict too_many = {
            .reason = r == -EBUSY ? DEAD_MAILBOX_FULL : DEAD_NO_MEMORY,
            .error = -r,
            .text = r == -EBUSY ? "too many open asks: each who gets one counts" : strerror(-r)};
        return refuse(to->context, envelope, to, &too_many,
                      r == -EBUSY ? ROUTER_E_FULL : ROUTER_E_MEMORY);
    }
    r = exchange_route(to->exchange, &envelope->topic, fan_out_one, &out);
    if (r == 0)
        return refuse(to->context, envelope, to, &no_match, ROUTER_E_NO_MATCH);
    if (r < 0)
        return refuse(to->context, envelope, to, &no_memory, ROUTER_E_MEMORY);
    if (out.n_lost > 0)
        return refuse_copies(to, envelope, out.n_lost);
    envelope_free(envelope);
    return 0;
}

void router_hand_on(struct actor *actor, struct envelope *envelope)
{
    if (actor->kind == ACTOR_GROUP)
        (void)hand_to_cell(actor, envelope);
    else
        (void)hand_to_subscribers(actor, envelope);
}

static int deliver(struct actor *to, struct envelope *envelope)
{
    switch (to->kind) {
    case ACTOR_POOL:
        return send_to_pool(to, envelope);
    case ACTOR_GROUP:
        return router_is_open(to) ? hand_to_cell(to, envelope) : enqueue(to, envelope);
    case ACTOR_EXCHANGE:
        return router_is_open(to) ? hand_to_subscribers(to, envelope) : enqueue(to, envelope);
    default:
        return send_to_inbox(to, envelope);
    }
}

int router_send(struct actor *to, struct envelope *envelope)
{
    int r;

    to = actor_self(to); /* nobody tells a stand-in anything */
    if (to->log & ACTOR_LOG_ENQUEUED)
        message_log(to, ACTOR_LOG_ENQUEUED,
                    &(struct message_log_entry){
                        .id = envelope->id, .sender = envelope->sender, .topic = &envelope->topic});
    r = deliver(to, envelope);
    to->counters.accepted += r == 0;
    return r;
}

/* ---- from elsewhere than a ring ---- */

static int make_envelope(struct context *context, const struct router_message *message,
                         struct envelope **ret)
{
    struct envelope *envelope = envelope_new(PROTOCOL_MESSAGE, &message->topic);

    if (!envelope)
        return -ENOMEM;
    if (message->payload)
        payload_move(&envelope->payload, message->payload);
    envelope->id = actor_next_id(context);
    envelope->sender = message->sender;
    envelope->sent_at = actor_realtime(context);
    envelope->timer = message->timer;
    envelope->flags = message->timer != 0 ? PROTOCOL_MESSAGE_TIMER : 0;
    *ret = envelope;
    return 0;
}

static int send_envelope(struct context *context, uint64_t to, struct envelope *envelope)
{
    struct actor *actor = actor_get(&context->actors, to);

    if (actor)
        return router_send(actor, envelope);
    envelope->to = to;
    return refuse_gone(context, envelope, NULL, NULL);
}

int router_tell(struct context *context, const struct router_message *message)
{
    struct envelope *envelope;
    int r;

    r = make_envelope(context, message, &envelope);
    if (r < 0)
        return r;
    return send_envelope(context, message->to, envelope);
}

int router_ask(struct context *context, const struct router_message *message, const char *wanted,
               usec_t timeout, ask_done_fn done, void *userdata, uint64_t *ret)
{
    const struct ask_options options = {
        .wanted = {.type = wanted, .type_size = (uint32_t)strlen(wanted)},
        .timeout = timeout,
        .done = done,
        .userdata = userdata,
    };
    struct envelope *envelope;
    struct ask *ask;
    int r;

    r = make_envelope(context, message, &envelope);
    if (r < 0)
        return r;
    r = ask_new(&ask, context, &options);
    if (r < 0) {
        envelope_free(envelope);
        return r;
    }
    envelope->ask = *ret = ask->handle;
    ask->quiet = true;
    r = send_envelope(context, message->to, envelope);
    ask = ask_get(&context->asks, *ret);
    if (r == 0 && ask) {
        ask->quiet = false;
        return 0;
    }
    if (ask)
        ask_drop(ask);
    return r != 0 ? r : ROUTER_E_GONE;
}

/* ---- pause ---- */

void router_pause(struct actor *actor)
{
    actor->paused = true;
    if (actor->endpoint)
        endpoint_set_control(actor->endpoint, actor->control |= MEMORY_CONTROL_PAUSE);
}

void router_resume(struct actor *actor)
{
    actor->paused = false;
    if (actor->endpoint)
        endpoint_set_control(actor->endpoint, actor->control &= ~(uint32_t)MEMORY_CONTROL_PAUSE);
    if (actor->kind == ACTOR_SLOT)
        slot_clock_messages(actor->slot);
    delivery_wake(actor);
}
