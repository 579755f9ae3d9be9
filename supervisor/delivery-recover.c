/* SPDX-License-Identifier: MIT */
#include "../shared/cleanup.h"
#include "complaint.h"
#include "context.h"
#include "death.h"
#include "delivery-private.h"
#include "router.h"
#include "watch.h"
#include <errno.h>
#include <string.h>

/* Free-running cursors: whether `a` lies behind `b`. */
static bool is_behind(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static uint32_t gate_of(const struct mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->gate, memory_order_relaxed);
}

/* ---- a letter out of its record ---- */

/* Those before it are not taken any more: letters are reported on in their order. */
static struct letter *take_kept(struct actor *actor, uint32_t cursor)
{
    struct list *node;

    while ((node = list_first(&actor->blobs))) {
        struct letter *letter = list_entry(node, struct letter, link);

        if (is_behind(letter->cursor, cursor))
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
    const uint32_t gate = gate_of(actor->mailbox);
    uint32_t at = is_behind(actor->settled, gate) ? actor->settled : gate;
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
        *ret = letter_of(actor, &message, at);
        if (!*ret)
            return -ENOMEM;
        actor->settled = at;
        return 0;
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

/* The last word on what was consumed: everything it said is read. */
static void settle(struct actor *actor)
{
    struct mailbox *mailbox = actor->mailbox;
    uint32_t at = gate_of(mailbox);
    struct ring_record record;
    /* Partner: the release store in the peer's ring_release(); it is dead, the order is certain. */
    const uint32_t head =
        atomic_load_explicit(&mailbox->channel.theirs.header->head, memory_order_acquire);

    while (is_behind(head, at)) {
        uint32_t next = at;
        if (ring_look(&mailbox->channel.out, &next, &record) != 0 || is_behind(next, head))
            break;
        delivery_on_consumed(actor, &record, next);
        at = next;
    }
    atomic_store_explicit(&mailbox->gate, at, memory_order_relaxed);
    mailbox->checking = false;
}

/* By the policy for what was in hand: it is in `back` afterwards, or in the error queue. */
static void retry_or_bury(struct actor *actor, struct letter *letter, struct list *back,
                          struct death *death)
{
    const struct actor_policy policy = actor_policy(actor);

    letter->attempt++;
    letter->in_hand = false;
    if (policy.on_crash == CONFIG_ON_CRASH_RETRY && letter->attempt <= policy.message_retries) {
        letter->flags |= PROTOCOL_MESSAGE_REDELIVERED;
        actor->counters.redelivered++;
        list_push_back(back, &letter->link);
        return;
    }
    const struct router_verdict verdict = {
        .reason = DEAD_CRASH,
        .error = ECONNRESET,
        .text = death ? death->detail : NULL,
        .death = death,
    };
    router_bury(actor->context, letter, actor, &verdict);
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
    uint32_t at = gate_of(mailbox);
    /* Partner: the worker's store before each handler. Compared, not followed. */
    const uint32_t taken =
        atomic_load_explicit(&mailbox->channel.theirs.header->taken, memory_order_relaxed);
    struct protocol_message message;
    struct ring_record record;

    while (ring_look(&mailbox->channel.out, &at, &record) == 0) {
        struct letter *letter;

        if (record.kind != PROTOCOL_MESSAGE || !is_behind(at, actor->settled) ||
            protocol_get_message(record.body, record.size, &message) < 0)
            continue;
        letter = letter_of(actor, &message, at);
        if (!letter) {
            complain(actor, LOG_LEVEL_ERROR, "a message is lost: out of memory");
            ask_letter_died(actor->context, message.ask, ENOMEM, "out of memory");
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
    struct actor *pool = delivery_pool_of(actor);
    struct list back = LIST_INIT(back);
    struct list *node;

    delivery_set_up(actor, false);
    ask_drop_all(actor);
    watch_drop_all(actor);
    drop_answers(actor);
    list_unlink(&actor->blocked_link);
    if (!actor->mailbox)
        return;
    settle(actor);
    collect_stash(actor, &back, death);
    collect_ring(actor, &back, death);
    /* The last one first: each goes before all others. */
    while ((node = list_first(&back))) {
        struct letter *letter = list_entry(back.prev, struct letter, link);
        struct actor *to = pool && (letter->flags & PROTOCOL_MESSAGE_POOL) ? pool : actor;

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
}

/* ---- taking a place ---- */

void delivery_take_over(struct actor *actor, struct actor *from)
{
    struct list *node;

    delivery_set_up(from, false);
    actor->mailbox = from->mailbox;
    actor->settled = from->settled;
    actor->control = from->control;
    actor->full = from->full;
    actor->owes = from->owes;
    actor->n_inbox = actor->n_pooled = 0;
    actor->n_recent = 0;
    from->mailbox = NULL;
    while ((node = list_first(&from->postbox.answers))) {
        struct letter *letter = list_entry(node, struct letter, link);
        postbox_take(&from->postbox, letter);
        postbox_add_answer(&actor->postbox, letter);
    }
    ask_move_all(from, actor);
    watch_move_all(from, actor);
    actor->held_up = from->held_up;
    if (list_linked(&from->blocked_link)) {
        /* It waits for room elsewhere: it looks again. */
        list_unlink(&from->blocked_link);
        mailbox_resume(actor->mailbox);
    }
    if (actor->paused && actor->mailbox)
        router_pause(actor);
}

bool delivery_is_quiet(const struct actor *actor)
{
    const struct mailbox *mailbox = actor->mailbox;

    if (!postbox_idle(&actor->postbox) || actor->postbox.n_stashed > 0)
        return false;
    return !mailbox || mailbox->dead ||
           atomic_load_explicit(&mailbox->channel.theirs.header->head, memory_order_relaxed) ==
               mailbox->channel.out.tail;
}

/* ---- flight recorder ---- */

static bool read_taken(const struct mailbox *mailbox, uint32_t start, struct delivery_taken *ret)
{
    const struct ring_producer *ring = &mailbox->channel.out;
    struct protocol_message message;
    struct ring_record record;

    /* Overwritten since. */
    if (ring->tail - start > ring->size)
        return false;
    if (ring_look(ring, &start, &record) != 0 || record.kind != PROTOCOL_MESSAGE ||
        protocol_get_message(record.body, record.size, &message) < 0)
        return false;
    *ret = (struct delivery_taken){
        .id = message.id,
        .sender = message.sender,
        .sent_at = message.sent_at,
        .topic = message.content.topic,
    };
    return true;
}

size_t delivery_flight_recorder(struct actor *actor, struct delivery_taken *ret, size_t max)
{
    const struct mailbox *mailbox = actor->mailbox;
    uint32_t at, start;
    struct ring_record record;
    size_t n = 0;

    settle(actor);
    at = gate_of(mailbox);
    if (max > 0 && ring_look(&mailbox->channel.out, &at, &record) == 0) {
        start = delivery_start_of(&record, at);
        ret[0].in_hand = false;
        if (at == atomic_load_explicit(&mailbox->channel.theirs.header->taken,
                                       memory_order_relaxed) &&
            read_taken(mailbox, start, &ret[0]))
            ret[n++].in_hand = true;
    }
    for (uint32_t i = 0; i < actor->n_recent && i < DELIVERY_RECENT && n < max; i++) {
        start = actor->recent[(actor->n_recent - 1 - i) % DELIVERY_RECENT];
        if (!read_taken(mailbox, start, &ret[n]))
            break;
        n++;
    }
    return n;
}
