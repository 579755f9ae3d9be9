/* SPDX-License-Identifier: MIT */

/* Exchanges and their subscriptions across an upgrade. */

#include "shared/base/log.h"
#include "shared/protocol/protocol-requests.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include <errno.h>
#include <string.h>

/* ---- saving ---- */

#define ROW exchange
#define EXCHANGE_FIELDS(F)                                                                         \
    F(UPGRADE, kind, BELOW(kind, _EXCHANGE_N_KINDS - 1))                                           \
    F(UPGRADE, creator, NUMBER(creator))                                                           \
    F(UPGRADE, group, WORD(group))
const struct record EXCHANGE_RECORD = RECORD("exchange", EXCHANGE_FIELDS);
#undef ROW

struct subscription_row {
    uint64_t exchange, subscriber, sequence;
};

#define ROW subscription_row
#define SUBSCRIPTION_FIELDS(F)                                                                     \
    F(UPGRADE, exchange, NUMBER(exchange))                                                         \
    F(UPGRADE, subscriber, NUMBER(subscriber))                                                     \
    F(UPGRADE, sequence, BELOW(sequence, INT64_MAX))
const struct record SUBSCRIPTION_RECORD = RECORD(SUBSCRIPTION_ROW, SUBSCRIPTION_FIELDS);

static void save_exchange(const struct actor *actor, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_text(&row, actor->name);
    record_put(&row, &EXCHANGE_RECORD, actor_exchange(actor));
    saved_add(saver, EXCHANGE_RECORD.name, &row, NULL);
}

static void save_subscriptions(const struct actor *actor, struct saver *saver)
{
    list_for_each (node, &actor_exchange(actor)->subscriptions) {
        const struct exchange_subscription *subscription =
            list_entry(node, struct exchange_subscription, link);
        const struct subscription_row numbers = {actor->reference, subscription->subscriber->actor,
                                                 subscription->sequence};
        struct saved_writer row = {0};

        record_put(&row, &SUBSCRIPTION_RECORD, &numbers);
        topic_put(&row, &subscription->topic);
        saved_add(saver, SUBSCRIPTION_ROW, &row, NULL);
    }
}

void exchange_save(const struct actor *actor, struct saver *saver)
{
    if (!actor_exchange(actor))
        return;
    if (!actor_exchange(actor)->declared)
        save_exchange(actor, saver);
    save_subscriptions(actor, saver);
}

/* ---- restoring ---- */

/* Makes a saved exchange again, even if its creator has ended. */
static int make(struct message_context *context, const char *name, enum exchange_kind kind,
                uint64_t creator, const char *group)
{
    struct actor *maker = actor_get(context, creator), *actor;
    int r = maker ? exchange_actor_restore(&actor, maker, name, kind)
                  : exchange_actor_new(&actor, context, name, kind, false);

    if (r != 0)
        return r;
    actor_exchange(actor)->creator = creator;
    if (!actor_exchange(actor)->group && group)
        actor_exchange(actor)->group = strdup(group);
    return 0;
}

int exchange_restore_row(struct message_context *context, struct saved_reader *row)
{
    char name[PROTOCOL_ACTOR_NAME_MAX + 1];
    struct exchange saved = {0};
    const struct actor *other;

    saved_get_text(row, name, sizeof(name));
    record_get(row, &EXCHANGE_RECORD, &saved);
    if (row->damaged)
        return -EBADMSG;
    other = actor_by_name(context, name);
    if (other && actor_exchange(other) && actor_exchange(other)->declared)
        return 0;
    switch (make(context, name, saved.kind, saved.creator, saved.group)) {
    case 0:
        return 0;
    case ACTOR_E_EXISTS:
        log_warning("exchange %s, made by %s, is deleted: a file declares a group of that name",
                    name, actor_name_of(context, saved.creator));
        return 0;
    case ACTOR_E_BAD_NAME:
        return -EBADMSG;
    case ACTOR_E_TOO_MANY:
        return -ENOSPC;
    default:
        return -ENOMEM;
    }
}

int subscription_restore_row(struct message_context *context, struct saved_reader *row)
{
    struct subscription_row saved = {0};
    struct actor *exchange, *subscriber;
    struct topic topic;
    int r;

    record_get(row, &SUBSCRIPTION_RECORD, &saved);
    exchange = actor_get(context, saved.exchange);
    subscriber = actor_get(context, saved.subscriber);
    r = topic_get(row, &topic);
    if (r < 0 || (exchange && !actor_exchange(exchange)))
        return -EBADMSG;
    if (!exchange || !subscriber)
        return 0; /* it has ended with one of them */
    /* Records the first subscriber's group again; the subscription itself was already permitted. */
    (void)exchange_actor_admit(exchange, subscriber);
    /* A message may have been copied up to one of these sequences, so they stay the same. */
    if (saved.sequence > actor_exchange(exchange)->sequence)
        actor_exchange(exchange)->sequence = saved.sequence - 1;
    r = exchange_subscribe(actor_exchange(exchange), &subscriber->subscriptions, &topic);
    return r == EXCHANGE_E_FULL ? -ENOSPC : r;
}
