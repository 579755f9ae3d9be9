/* SPDX-License-Identifier: MIT */

/* Actors, their names and monitors across an upgrade. */

#include "shared/base/hash.h"
#include "shared/base/log.h"
#include "shared/protocol/protocol-requests.h"
#include "shared/ring/memory.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include <errno.h>
#include <string.h>

/* The state that an upgrade saves for workers and clients. */
#define KEPT (MEMORY_KEPT_ASKS | MEMORY_KEPT_MONITORS | MEMORY_KEPT_REQUESTS | MEMORY_KEPT_TIES)

/* Whether messages wait for it, or others count on it: it is to be there after the upgrade. */
static bool is_needed(const struct actor *actor)
{
    return !mailbox_idle(&actor->mailbox) ||
           (actor->scheduled && !list_empty(&actor->scheduled->schedules)) ||
           !list_empty(&actor->observers) || !list_empty(&actor->names) ||
           actor->subscriptions.n_subscriptions > 0;
}

#define ROW message_context
#define MESSAGES_FIELDS(F)                                                                         \
    F(UPGRADE, last_message, NUMBER(last_message))                                                 \
    F(UPGRADE, last_timer, NUMBER(schedules.last_id))                                              \
    F(UPGRADE, retired, ARRAY(retired))
const struct record MESSAGES_RECORD = RECORD("messages", MESSAGES_FIELDS);

#undef ROW

#define ROW actor_counters
#define COUNTERS_FIELDS(F)                                                                         \
    F(UPGRADE, accepted, NUMBER(accepted))                                                         \
    F(UPGRADE, delivered, NUMBER(delivered))                                                       \
    F(UPGRADE, consumed, NUMBER(consumed))                                                         \
    F(UPGRADE, dead, NUMBER(dead))                                                                 \
    F(UPGRADE, redelivered, NUMBER(redelivered))
static const struct record COUNTERS_RECORD = RECORD("actor-counters", COUNTERS_FIELDS);
#undef ROW

#define ROW actor_row
#define ACTOR_FIELDS(F)                                                                            \
    F(UPGRADE, name, WORD(name))                                                                   \
    F(UPGRADE, reference, BELOW(reference, INT64_MAX))                                             \
    F(UPGRADE, standby, NUMBER(standby))                                                           \
    F(UPGRADE, needed, NUMBER(needed))                                                             \
    F(UPGRADE, exchange, NUMBER(exchange))                                                         \
    F(UPGRADE, counters, SUBRECORD(counters, COUNTERS_RECORD))
const struct record ACTOR_RECORD = RECORD(ACTOR_ROW, ACTOR_FIELDS);

void actor_save(const struct actor *actor, struct saver *saver)
{
    const struct actor_row row = {
        .name = actor->name,
        .reference = actor->reference,
        .standby = actor->place,
        .needed = is_needed(actor),
        .exchange = actor_is(actor, ACTOR_EXCHANGE),
        .counters = actor->counters,
    };

    record_save(saver, &ACTOR_RECORD, &row, NULL);
}

void actors_save_each(const struct message_context *context, struct saver *saver,
                      void (*save)(const struct actor *actor, struct saver *saver))
{
    actor_each (actor, &context->actors)
        save(actor, saver);
}

int messages_inherit(struct message_context *context, struct saved_reader *row)
{
    record_get(row, &MESSAGES_RECORD, context);
    context->kept |= KEPT;
    return row->damaged ? -EBADMSG : 0;
}

static void retire(void *userdata, struct saved_reader *row)
{
    struct actor_row actor;

    if (actor_row_read(row, &actor) == 0)
        actor_retire_name(userdata, actor.name);
}

void actors_settle(struct message_context *context)
{
    (void)waiting_room_settle(&context->inherited, ACTOR_ROW, retire, context);
    (void)waiting_room_settle(&context->inherited, STANDBY_ROW, NULL, NULL);
}

static uint64_t number_of(const char *name)
{
    return hash_bytes(name, strlen(name));
}

int actor_row_read(struct saved_reader *row, struct actor_row *ret)
{
    *ret = (struct actor_row){0};
    record_get(row, &ACTOR_RECORD, ret);
    return row->damaged || !ret->name || ret->reference == 0 ? -EBADMSG : 0;
}

int actor_row_restore(struct message_context *context, struct saved_reader *row)
{
    const struct saved_reader whole = *row;
    struct actor_row actor;
    int r = actor_row_read(row, &actor);

    if (r < 0)
        return r;
    return waiting_room_add(&context->inherited, actor.standby ? STANDBY_ROW : ACTOR_ROW,
                            number_of(actor.name), &whole);
}

bool actor_row_take(struct waiting_room *room, const char *name, struct actor_row *ret)
{
    const uint64_t number = number_of(name);
    const char *kind = ACTOR_ROW;
    struct saved_reader row;

    if (!waiting_room_find(room, kind, number, &row)) {
        kind = STANDBY_ROW;
        if (!waiting_room_find(room, kind, number, &row))
            return false;
    }
    (void)actor_row_read(&row, ret);
    waiting_room_remove(room, kind, number);
    return true;
}
