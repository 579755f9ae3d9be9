/* SPDX-License-Identifier: MIT */
#include "supervisor/message/router.h"

#include "supervisor/channel/mailbox.h"
#include "supervisor/context.h"
#include "supervisor/group/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/message/delivery.h"
#include "supervisor/message/message-log.h"
#include "supervisor/pool/slot.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Exchanges one letter may go through: beyond that it is taken to go round. */
#define ROUTER_HOPS_MAX 8u

/* ---- where it goes ---- */

static int refuse(struct context *context, struct letter *letter, const struct actor *to,
                  const struct router_verdict *verdict, int result)
{
    router_bury(context, letter, to, verdict);
    return result;
}

static int refuse_gone(struct context *context, struct letter *letter, const struct actor *to,
                       const char *text)
{
    const struct router_verdict verdict = {.reason = DEAD_GONE, .error = ENOENT, .text = text};

    return refuse(context, letter, to, &verdict, ROUTER_E_GONE);
}

bool router_has_room(const struct actor *to, uint64_t bytes)
{
    const struct actor_policy policy = actor_policy(to);

    return postbox_has_room(&to->postbox, bytes, policy.mailbox_max, policy.mailbox_memory_max);
}

bool router_answer_fits(const struct actor *asker, uint64_t bytes)
{
    const uint64_t max = actor_policy(asker).mailbox_memory_max;
    const uint64_t used = asker->postbox.answer_bytes;

    return used == 0 || (bytes <= max && used <= max - bytes);
}

static void drop_oldest(struct actor *to, uint64_t bytes)
{
    const struct router_verdict verdict = {
        .reason = DEAD_DROPPED, .error = ENOBUFS, .text = "dropped for a later one"};
    struct letter *oldest;

    while (!router_has_room(to, bytes) && (oldest = postbox_oldest(&to->postbox))) {
        postbox_take(&to->postbox, oldest);
        router_bury(to->context, oldest, to, &verdict);
    }
}

/* Into its postbox, by its policy. */
static int enqueue(struct actor *to, struct letter *letter)
{
    const struct router_verdict full = {
        .reason = DEAD_MAILBOX_FULL, .error = ENOBUFS, .text = "the mailbox is full"};
    const uint64_t bytes = letter_bytes(letter);

    if (actor_policy(to).overflow == CONFIG_OVERFLOW_DROP_OLDEST)
        drop_oldest(to, bytes);
    if (!router_has_room(to, bytes))
        return refuse(to->context, letter, to, &full, ROUTER_E_FULL);
    postbox_add(&to->postbox, letter);
    if (!to->full)
        delivery_wake(to);
    return 0;
}

static int send_to_inbox(struct actor *to, struct letter *letter)
{
    if (delivery_is_direct(to) && !to->full && delivery_send(to, letter) == 0)
        return 0;
    return enqueue(to, letter);
}

static int send_to_pool(struct actor *to, struct letter *letter)
{
    struct actor *slot = NULL;

    letter->flags |= PROTOCOL_MESSAGE_POOL;
    if (!to->paused && postbox_idle(&to->postbox))
        slot = pool_pick(&to->pool, to->cell->config->batch_max);
    if (slot && delivery_send(slot, letter) == 0)
        return 0;
    return enqueue(to, letter);
}

bool router_is_stopped(const struct actor *actor)
{
    switch (actor->kind) {
    case ACTOR_SLOT:
        return slot_is_down(actor->slot);
    case ACTOR_POOL:
        return census_down(&actor->cell->census);
    case ACTOR_GROUP: /* cells come with their first message */
        return !actor->group->wanted;
    default:
        return false;
    }
}

bool router_is_open(const struct actor *actor)
{
    return !actor->paused && postbox_idle(&actor->postbox);
}

struct actor *router_cell_of(const struct actor *group, const char *key, uint32_t key_size)
{
    struct cell *cell;

    return group_take_cell(group->group, key, key_size, &cell) == 0 ? cell->actor : NULL;
}

static int refuse_cell(struct actor *to, struct letter *letter, int r)
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
    return refuse(to->context, letter, to, &verdict, result);
}

static int hand_to_cell(struct actor *to, struct letter *letter)
{
    struct cell *cell;
    int r;

    r = group_take_cell(to->group, letter->topic.key, letter->topic.key_size, &cell);
    return r == 0 ? router_send(cell->actor, letter) : refuse_cell(to, letter, r);
}

/* ---- exchanges ---- */

struct fan_out {
    struct context *context;
    struct letter *letter;
    unsigned n_lost;
};

static void fan_out_one(void *userdata, uint64_t reference)
{
    struct fan_out *out = userdata;
    struct letter *copy = letter_copy(out->letter);
    struct actor *to = actor_get(&out->context->actors, reference);

    if (!copy) {
        out->n_lost++;
        ask_letter_died(out->context, out->letter->ask, ENOMEM, "out of memory");
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
static int share_ask(struct actor *exchange, const struct letter *letter)
{
    struct ask *ask = ask_get(&exchange->context->asks, letter->ask);
    unsigned n = 0;

    if (!ask || exchange_route(exchange->exchange, &letter->topic, count_copy, &n) <= 0 || n == 1)
        return 0;
    return ask_share(ask, n);
}

/* The letter itself is the dead letter for all copies that could not be made. */
static int refuse_copies(struct actor *to, struct letter *letter, unsigned n)
{
    char text[96];
    const struct router_verdict verdict = {.reason = DEAD_NO_MEMORY, .error = ENOMEM, .text = text};

    (void)snprintf(text, sizeof(text), "%u of its copies are lost: out of memory or descriptors",
                   n);
    letter->ask = 0; /* each copy has been counted */
    return refuse(to->context, letter, to, &verdict, ROUTER_E_MEMORY);
}

static int hand_to_subscribers(struct actor *to, struct letter *letter)
{
    const struct router_verdict no_memory = {
        .reason = DEAD_NO_MEMORY, .error = ENOMEM, .text = strerror(ENOMEM)};
    struct fan_out out = {.context = to->context, .letter = letter};
    const struct router_verdict no_match = {
        .reason = DEAD_NO_MATCH, .error = ENOENT, .text = "nobody has subscribed to it"};
    const struct router_verdict round = {
        .reason = DEAD_LOOP, .error = ELOOP, .text = "it went through too many exchanges"};
    int r;

    if (letter->hops >= ROUTER_HOPS_MAX)
        return refuse(to->context, letter, to, &round, ROUTER_E_NO_MATCH);
    r = share_ask(to, letter);
    if (r < 0) {
        const struct router_verdict too_many = {
            .reason = r == -EBUSY ? DEAD_MAILBOX_FULL : DEAD_NO_MEMORY,
            .error = -r,
            .text = r == -EBUSY ? "too many open asks: each who gets one counts" : strerror(-r)};
        return refuse(to->context, letter, to, &too_many,
                      r == -EBUSY ? ROUTER_E_FULL : ROUTER_E_MEMORY);
    }
    r = exchange_route(to->exchange, &letter->topic, fan_out_one, &out);
    if (r == 0)
        return refuse(to->context, letter, to, &no_match, ROUTER_E_NO_MATCH);
    if (r < 0)
        return refuse(to->context, letter, to, &no_memory, ROUTER_E_MEMORY);
    if (out.n_lost > 0)
        return refuse_copies(to, letter, out.n_lost);
    letter_free(letter);
    return 0;
}

void router_hand_on(struct actor *actor, struct letter *letter)
{
    if (actor->kind == ACTOR_GROUP)
        (void)hand_to_cell(actor, letter);
    else
        (void)hand_to_subscribers(actor, letter);
}

static int deliver(struct actor *to, struct letter *letter)
{
    switch (to->kind) {
    case ACTOR_POOL:
        return send_to_pool(to, letter);
    case ACTOR_GROUP:
        return router_is_open(to) ? hand_to_cell(to, letter) : enqueue(to, letter);
    case ACTOR_EXCHANGE:
        return router_is_open(to) ? hand_to_subscribers(to, letter) : enqueue(to, letter);
    default:
        return send_to_inbox(to, letter);
    }
}

int router_send(struct actor *to, struct letter *letter)
{
    int r;

    to = actor_self(to); /* nobody tells a stand-in anything */
    if (to->log & ACTOR_LOG_ENQUEUED)
        message_log(to, ACTOR_LOG_ENQUEUED,
                    &(struct message_log_entry){
                        .id = letter->id, .sender = letter->sender, .topic = &letter->topic});
    r = deliver(to, letter);
    to->counters.accepted += r == 0;
    return r;
}

/* ---- from elsewhere than a ring ---- */

static int make_letter(struct context *context, const struct router_message *message,
                       struct letter **ret)
{
    struct letter *letter = letter_new(PROTOCOL_MESSAGE, &message->topic);

    if (!letter)
        return -ENOMEM;
    if (message->payload)
        parcel_move(&letter->payload, message->payload);
    letter->id = actor_next_id(context);
    letter->sender = message->sender;
    letter->sent_at = actor_realtime(context);
    letter->timer = message->timer;
    letter->flags = message->timer != 0 ? PROTOCOL_MESSAGE_TIMER : 0;
    *ret = letter;
    return 0;
}

static int send_letter(struct context *context, uint64_t to, struct letter *letter)
{
    struct actor *actor = actor_get(&context->actors, to);

    if (actor)
        return router_send(actor, letter);
    letter->to = to;
    return refuse_gone(context, letter, NULL, NULL);
}

int router_tell(struct context *context, const struct router_message *message)
{
    struct letter *letter;
    int r;

    r = make_letter(context, message, &letter);
    if (r < 0)
        return r;
    return send_letter(context, message->to, letter);
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
    struct letter *letter;
    struct ask *ask;
    int r;

    r = make_letter(context, message, &letter);
    if (r < 0)
        return r;
    r = ask_new(&ask, context, &options);
    if (r < 0) {
        letter_free(letter);
        return r;
    }
    letter->ask = *ret = ask->handle;
    ask->quiet = true;
    r = send_letter(context, message->to, letter);
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
    if (actor->mailbox)
        mailbox_set_control(actor->mailbox, actor->control |= MEMORY_CONTROL_PAUSE);
}

void router_resume(struct actor *actor)
{
    actor->paused = false;
    if (actor->mailbox)
        mailbox_set_control(actor->mailbox, actor->control &= ~(uint32_t)MEMORY_CONTROL_PAUSE);
    if (actor->kind == ACTOR_SLOT)
        slot_clock_messages(actor->slot);
    delivery_wake(actor);
}
