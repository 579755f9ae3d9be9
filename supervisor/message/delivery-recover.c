/* SPDX-License-Identifier: MIT */
#include "shared/cleanup.h"
#include "supervisor/context.h"
#include "supervisor/event/complaint.h"
#include "supervisor/message/delivery-private.h"
#include "supervisor/message/router.h"
#include "supervisor/message/stand-in.h"
#include "supervisor/message/watch.h"
#include "supervisor/process/death.h"
#include <errno.h>
#include <string.h>

/* ---- a letter out of its record ---- */

/* Those before it are not taken any more: letters are reported on in their order. */
static struct letter *take_kept(struct actor *actor, uint32_t cursor)
{
    struct list *node;

    while ((node = list_first(&actor->blobs))) {
        struct letter *letter = list_entry(node, struct letter, link);

        if (delivery_is_behind(letter->cursor, cursor))
            return NULL;
        list_unlink(node);
        if (letter->cursor == cursor)
            return letter;
        letter_free(letter);
    }
    return NULL;
}

static struct letter *letter_of(struct actor *actor, const struct protocol_message *message,
                                uint32_t cursor)
{
    struct letter *letter;

    if (message->content.payload.form == PAYLOAD_BLOB)
        return take_kept(actor, cursor);
    letter = letter_new(PROTOCOL_MESSAGE, &message->content.topic);
    if (!letter)
        return NULL;
    if (parcel_set(&letter->payload, message->content.payload.data,
                   (size_t)message->content.payload.size) < 0)
        return letter_free(letter);
    letter->id = message->id;
    letter->sender = message->sender;
    letter->ask = message->ask;
    letter->timer = message->timer;
    letter->sent_at = message->sent_at;
    letter->flags = message->flags;
    letter->attempt = message->attempt;
    return letter;
}

/* There is no memory to make it a letter. */
static void lose(struct actor *actor, const struct protocol_message *message)
{
    complain(actor, LOG_LEVEL_ERROR, "a message is lost: out of memory");
    ask_letter_died(actor->context, message->ask, ENOMEM, "out of memory");
}

/* ---- what a worker says about its letters ---- */

/* There is more room afterwards: whoever waits for that goes on, also what is for the pool. */
static void take_stashed(struct actor *actor, struct letter *letter)
{
    struct actor *pool = delivery_pool_of(actor);

    postbox_take(&actor->postbox, letter);
    delivery_wake(actor);
    if (pool && !postbox_idle(&pool->postbox))
        delivery_wake(pool);
}

int delivery_claim(struct actor *actor, uint64_t id, struct letter **ret)
{
    const uint32_t gate = delivery_gate_of(actor->mailbox);
    uint32_t at = delivery_is_behind(actor->settled, gate) ? actor->settled : gate;
    struct protocol_message message;
    struct ring_record record;

    *ret = postbox_stashed(&actor->postbox, id);
    if (*ret) {
        take_stashed(actor, *ret);
        return 0;
    }
    /* Forward only: every record is passed once, whatever a worker says. */
    while (ring_look(&actor->mailbox->channel.out, &at, &record) == 0) {
        if (record.kind != PROTOCOL_MESSAGE ||
            protocol_get_message(record.body, record.size, &message) < 0 || message.id != id)
            continue;
        actor->settled = at;
        *ret = letter_of(actor, &message, at);
        if (!*ret)
            lose(actor, &message);
        return *ret ? 0 : -ENOMEM;
    }
    return -EBADMSG;
}

int delivery_stash(struct actor *actor, const struct protocol_stash *stash)
{
    struct letter *letter = postbox_stashed(&actor->postbox, stash->letter);
    int r;

    if (!letter) {
        r = delivery_claim(actor, stash->letter, &letter);
        if (r < 0)
            return r;
        postbox_add_stash(&actor->postbox, letter);
    }
    postbox_set_in_hand(&actor->postbox, letter, stash->flags & PROTOCOL_STASH_IN_HAND);
    return 0;
}

int delivery_unstash(struct actor *actor, uint64_t id)
{
    struct letter *letter = postbox_stashed(&actor->postbox, id);

    if (!letter)
        return -EBADMSG;
    take_stashed(actor, letter);
    letter_free(letter);
    return 0;
}

/* ---- after a death ---- */

void delivery_settle(struct actor *actor)
{
    struct mailbox *mailbox = actor->mailbox;
    uint32_t at = delivery_gate_of(mailbox);
    struct ring_record record;
    /* Partner: the release store in the peer's ring_release(); it is dead, the order is certain. */
    const uint32_t head =
        atomic_load_explicit(&mailbox->channel.theirs.header->head, memory_order_acquire);

    while (delivery_is_behind(head, at)) {
        uint32_t next = at;
        if (ring_look(&mailbox->channel.out, &next, &record) != 0 || delivery_is_behind(next, head))
            break;
        delivery_on_consumed(actor, &record, next);
        at = next;
    }
    atomic_store_explicit(&mailbox->gate, at, memory_order_relaxed);
    mailbox->checking = false;
}

/* Of the workers that had it in hand, the last one first in the log. Their number. */
static size_t find_killed(const struct actor *actor, const struct letter *letter,
                          struct death *death, struct death *ret[DEAD_LETTER_DEATHS_MAX])
{
    const size_t n =
        death_log_find_message(&actor->context->deaths, letter->id, ret, DEAD_LETTER_DEATHS_MAX);

    if (n > 0 || !death)
        return n;
    ret[0] = death;
    return 1;
}

/* By the policy for what was in hand: it is in `back` afterwards, or in the error queue. */
static void retry_or_bury(struct actor *actor, struct letter *letter, struct list *back,
                          struct death *death)
{
    const struct actor_policy policy = actor_policy(actor);
    struct death *deaths[DEAD_LETTER_DEATHS_MAX];
    struct actor *self = actor_self(actor);

    letter->attempt++;
    letter->in_hand = false;
    if (policy.on_crash == CONFIG_ON_CRASH_RETRY && letter->attempt <= policy.message_retries) {
        letter->flags |= PROTOCOL_MESSAGE_REDELIVERED;
        self->counters.redelivered++;
        list_push_back(back, &letter->link);
        return;
    }
    const struct router_verdict verdict = {
        .reason = DEAD_CRASH,
        .error = ECONNRESET,
        .text = death ? death->detail : NULL,
        .deaths = deaths,
        .n_deaths = find_killed(actor, letter, death, deaths),
    };
    router_bury(actor->context, letter, self, &verdict);
}

static void collect_stash(struct actor *actor, struct list *back, struct death *death)
{
    struct list *node;

    while ((node = list_first(&actor->postbox.stash))) {
        struct letter *letter = list_entry(node, struct letter, link);
        postbox_take(&actor->postbox, letter);
        if (letter->in_hand)
            retry_or_bury(actor, letter, back, death);
        else
            list_push_back(back, &letter->link);
    }
}

static void collect_ring(struct actor *actor, struct list *back, struct death *death)
{
    const struct mailbox *mailbox = actor->mailbox;
    uint32_t at = delivery_gate_of(mailbox);
    /* Partner: the worker's store before each handler. Compared, not followed. */
    const uint32_t taken =
        atomic_load_explicit(&mailbox->channel.theirs.header->taken, memory_order_relaxed);
    struct protocol_message message;
    struct ring_record record;

    while (ring_look(&mailbox->channel.out, &at, &record) == 0) {
        struct letter *letter;

        if (record.kind != PROTOCOL_MESSAGE || !delivery_is_behind(at, actor->settled) ||
            protocol_get_message(record.body, record.size, &message) < 0)
            continue;
        letter = letter_of(actor, &message, at);
        if (!letter) {
            lose(actor, &message);
            continue;
        }
        if (taken == at)
            retry_or_bury(actor, letter, back, death);
        else
            list_push_back(back, &letter->link);
    }
}

static void drop_answers(struct actor *actor)
{
    struct list *node;

    while ((node = list_first(&actor->postbox.answers))) {
        struct letter *letter = list_entry(node, struct letter, link);
        postbox_take(&actor->postbox, letter);
        letter_free(letter);
    }
}

void delivery_recover(struct actor *actor, struct death *death)
{
    struct actor *pool = delivery_pool_of(actor), *self = actor_self(actor);
    struct list back = LIST_INIT(back);
    struct list *node;

    delivery_set_up(actor, false);
    ask_drop_all(actor);
    watch_drop_all(actor);
    drop_answers(actor);
    list_unlink(&actor->blocked_link);
    if (!actor->mailbox)
        return;
    delivery_settle(actor);
    collect_stash(actor, &back, death);
    collect_ring(actor, &back, death);
    /* The last one first: each goes before all others. */
    while ((node = list_first(&back))) {
        struct letter *letter = list_entry(back.prev, struct letter, link);
        struct actor *to = pool && (letter->flags & PROTOCOL_MESSAGE_POOL) ? pool : self;

        list_unlink(&letter->link);
        postbox_add_front(&to->postbox, letter);
        if (to != actor)
            delivery_wake(to);
    }
    while ((node = list_first(&actor->blobs))) {
        list_unlink(node);
        letter_free(list_entry(node, struct letter, link));
    }
    actor->n_inbox = actor->n_pooled = 0;
    actor->mailbox = NULL;
    if (self == actor)
        return;
    self->counters.consumed += actor->counters.consumed;
    actor->counters.consumed = 0;
    stand_in_release(actor);
}
