/* SPDX-License-Identifier: MIT */
#include "supervisor/message/exchange/exchange-save.h"

#include "shared/base/log.h"
#include "shared/protocol/protocol-requests.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/envelope-save.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <string.h>

/* ---- saving ---- */

#define ROW exchange
#define EXCHANGE_FIELDS(F)                                                                         \
    F(UPGRADE, kind, BELOW(kind, _EXCHANGE_N_KINDS - 1))                                           \
    F(UPGRADE, creator, NUMBER(creator))                                                           \
    F(UPGRADE, group, WORD(group))
static const struct field FIELDS[] = {EXCHANGE_FIELDS(FIELD)};
const struct record EXCHANGE_RECORD = RECORD(EXCHANGE_ROW, FIELDS);

static int save_exchange(const struct actor *actor, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_text(&row, actor->name);
    record_put(&row, &EXCHANGE_RECORD, actor_exchange(actor));
    return saved_add(saver, EXCHANGE_ROW, &row, NULL);
}

static int save_subscriptions(const struct actor *actor, struct saver *saver)
{
    int r = 0;

    list_for_each (node, &actor_exchange(actor)->subscriptions) {
        const struct exchange_subscription *subscription =
            list_entry(node, struct exchange_subscription, link);
        struct saved_writer row = {0};

        saved_put_number(&row, actor->reference);
        saved_put_number(&row, subscription->subscriber->actor);
        topic_put(&row, &subscription->topic);
        saved_put_number(&row, subscription->sequence);
        r = saved_add(saver, SUBSCRIPTION_ROW, &row, NULL);
        if (r < 0)
            break;
    }
    return r;
}

int exchange_save(const struct actor *actor, struct saver *saver)
{
    int r = 0;

    if (!actor_exchange(actor))
        return 0;
    if (!actor_exchange(actor)->declared)
        r = save_exchange(actor, saver);
    return r == 0 ? save_subscriptions(actor, saver) : r;
}

/* ---- restoring ---- */

/* Makes a saved exchange again, even if its creator has ended. */
static int make(struct message_context *context, const char *name, enum exchange_kind kind,
                uint64_t creator, const char *group)
{
    struct actor *maker = actor_get(context, creator), *actor;
    int r = maker ? exchange_actor_make(&actor, maker, name, kind)
                  : exchange_actor_new(&actor, context, name, kind);

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
    struct actor *exchange = actor_get(context, saved_get_number(row));
    struct actor *subscriber = actor_get(context, saved_get_number(row));
    struct topic topic;
    int r = topic_get(row, &topic);
    const uint64_t sequence = saved_get_number(row);

    if (r < 0 || (exchange && !actor_exchange(exchange)))
        return -EBADMSG;
    if (!exchange || !subscriber)
        return 0; /* it has ended with one of them */
    /* Records the first subscriber's group again; the subscription itself was already permitted. */
    (void)exchange_actor_admit(exchange, subscriber);
    /* A message may have been copied up to one of these sequences, so they stay the same. */
    if (sequence > actor_exchange(exchange)->sequence && sequence <= INT64_MAX)
        actor_exchange(exchange)->sequence = sequence - 1;
    r = exchange_subscribe(actor_exchange(exchange), &subscriber->subscriptions, &topic);
    return r == EXCHANGE_E_FULL ? -ENOSPC : r;
}
