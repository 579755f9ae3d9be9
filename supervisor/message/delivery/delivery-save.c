/* SPDX-License-Identifier: MIT */

/* Mailboxes and messages in hand across an upgrade. */

#include "supervisor/message/message-save.h"

#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/delivery/delivery-private.h"
#include "supervisor/message/message-context.h"
#include <errno.h>

/* ---- saving ---- */

#define ROW actor
#define INBOX_FIELDS(F)                                                                            \
    F(UPGRADE, paused, NUMBER(paused))                                                             \
    F(UPGRADE, log, NUMBER(log))                                                                   \
    F(UPGRADE, settled, NUMBER(inbox.settled))
const struct record INBOX_RECORD = RECORD("inbox", INBOX_FIELDS);

static void save_inbox(const struct actor *actor, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_number(&row, actor->reference);
    saved_put_number(&row, actor->waits_for ? actor->waits_for->reference : 0);
    record_put(&row, &INBOX_RECORD, actor);
    saved_add(saver, INBOX_RECORD.name, &row, NULL);
}

static void save_list(const struct actor *actor, const struct list *messages, struct saver *saver)
{
    list_for_each_entry (envelope, messages, struct envelope, link) {
        struct saved_writer row = {0};

        saved_put_number(&row, actor->reference);
        topic_put(&row, &envelope->topic);
        saved_put_bytes(&row, envelope->head, envelope->head_size);
        record_put(&row, &ENVELOPE_RECORD, envelope);
        saved_add(saver, MAIL_ROW, &row, &envelope->payload);
    }
}

/* A stash comes before what waits, as its messages are older. */
void delivery_save(const struct actor *actor, struct saver *saver)
{
    save_inbox(actor, saver);
    save_list(actor, &actor->blobs, saver);
    save_list(actor, &actor->mailbox.stash, saver);
    save_list(actor, &actor->mailbox.answers, saver);
    save_list(actor, &actor->mailbox.messages, saver);
}

/* ---- restoring ---- */

/* Unless it is not where a record ends: the messages before it count as not reported on then. */
static void restore_settled(struct actor *actor, uint32_t settled)
{
    struct endpoint *endpoint = actor->inbox.endpoint;
    uint32_t at = delivery_gate_of(endpoint);
    struct ring_record record;

    while (delivery_is_behind(settled, at) && ring_look(&endpoint->channel.out, &at, &record) == 0)
        if (at == settled)
            actor->inbox.settled = settled;
}

/* The worker of a standby may have ended. */
static void restore_wait(struct actor *actor, uint64_t reference)
{
    struct actor *standby = actor_get(actor->context, reference);

    if (standby && standby->place == actor && standby->inbox.endpoint)
        actor->waits_for = standby;
}

int inbox_restore(struct message_context *context, struct saved_reader *row)
{
    struct actor *actor = actor_get(context, saved_get_number(row));
    const uint64_t waits_for = saved_get_number(row);
    struct actor saved = {0};

    record_get(row, &INBOX_RECORD, &saved);
    if (row->damaged)
        return -EBADMSG;
    if (!actor)
        return 0; /* nothing of it is left to restore */
    actor->log = saved.log;
    if (saved.paused && !actor->paused)
        delivery_pause(actor);
    if (waits_for != 0)
        restore_wait(actor, waits_for);
    if (actor->inbox.endpoint)
        restore_settled(actor, saved.inbox.settled);
    return 0;
}

/* As if it had gone between two messages. */
static void end_without_actor(struct message_context *context, struct envelope *envelope,
                              uint64_t reference)
{
    const struct undeliverable gone = {.reason = DEAD_GONE, .error = ENOENT};

    if (envelope->kind != PROTOCOL_MESSAGE) {
        (void)envelope_free(envelope);
        return;
    }
    envelope->to = reference;
    undeliverable_end(context, envelope, NULL, &gone);
}

static void put_back(struct actor *actor, struct envelope *envelope)
{
    mailbox_add(&actor->mailbox, envelope);
    actor_wake(actor);
}

static void put_into_stash(struct actor *actor, struct envelope *envelope)
{
    const bool in_hand = envelope->in_hand;

    mailbox_add_stash(&actor->mailbox, envelope);
    mailbox_set_in_hand(&actor->mailbox, envelope, in_hand);
}

static void put(struct actor *actor, struct envelope *envelope, enum envelope_place place)
{
    const bool has_worker = actor->inbox.endpoint != NULL;

    if (place == ENVELOPE_WAITS)
        put_back(actor, envelope);
    else if (place == ENVELOPE_STASHED && has_worker)
        put_into_stash(actor, envelope);
    else if (place == ENVELOPE_STASHED && envelope->flags & PROTOCOL_MESSAGE_POOL && actor->pool)
        put_back(actor->pool, envelope);
    else if (place == ENVELOPE_STASHED)
        put_back(actor_self(actor), envelope);
    else if (place == ENVELOPE_ANSWERS)
        actor_answer(actor, envelope);
    else if (has_worker) /* it is in the inbox, and kept for its blob */
        list_push_back(&actor->blobs, &envelope->link);
    else
        end_without_actor(actor->context, envelope, actor->reference);
}

int mail_restore(struct message_context *context, struct saved_reader *row)
{
    const uint64_t reference = saved_get_number(row);
    struct actor *actor = actor_get(context, reference);
    struct envelope *envelope;
    enum envelope_place place;
    int r = envelope_get(row, &envelope);

    if (r < 0)
        return r;
    place = envelope->place;
    envelope->place = ENVELOPE_NOWHERE;
    if ((envelope->kind == PROTOCOL_MESSAGE) == (place == ENVELOPE_ANSWERS)) {
        (void)envelope_free(envelope);
        return -EBADMSG;
    }
    if (actor)
        put(actor, envelope, place);
    else
        end_without_actor(context, envelope, reference);
    return 0;
}
