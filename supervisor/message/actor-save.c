/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-save.h"

#include "shared/ring/memory.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is saved for workers and clients. */
#define KEPT (MEMORY_KEPT_MONITORS | MEMORY_KEPT_REQUESTS | MEMORY_KEPT_TIES)

/* Whether messages wait for it, or others count on it: it is to be there after the upgrade. */
static bool is_needed(const struct actor *actor)
{
    return !mailbox_idle(&actor->mailbox) || !list_empty(&actor->schedules) ||
           !list_empty(&actor->observers) || !list_empty(&actor->names) ||
           actor->subscriptions.n_subscriptions > 0;
}

#define ROW actor_counters
#define COUNTERS_FIELDS(F)                                                                         \
    F(UPGRADE, accepted, NUMBER(accepted))                                                         \
    F(UPGRADE, delivered, NUMBER(delivered))                                                       \
    F(UPGRADE, consumed, NUMBER(consumed))                                                         \
    F(UPGRADE, dead, NUMBER(dead))                                                                 \
    F(UPGRADE, redelivered, NUMBER(redelivered))
static const struct field COUNTERS[] = {COUNTERS_FIELDS(FIELD)};
static const struct record COUNTERS_RECORD = RECORD("actor-counters", COUNTERS);
#undef ROW

#define ROW actor_row
#define ACTOR_FIELDS(F)                                                                            \
    F(UPGRADE, name, WORD(name))                                                                   \
    F(UPGRADE, reference, BELOW(reference, INT64_MAX))                                             \
    F(UPGRADE, standby, NUMBER(standby))                                                           \
    F(UPGRADE, needed, NUMBER(needed))                                                             \
    F(UPGRADE, exchange, NUMBER(exchange))                                                         \
    F(UPGRADE, counters, SUBRECORD(counters, COUNTERS_RECORD))
static const struct field ACTOR[] = {ACTOR_FIELDS(FIELD)};
const struct record ACTOR_RECORD = RECORD(ACTOR_ROW, ACTOR);

static int save_actor(const struct actor *actor, struct saver *saver)
{
    const struct actor_row row = {
        .name = actor->name,
        .reference = actor->reference,
        .standby = actor->place,
        .needed = is_needed(actor),
        .exchange = actor_is(actor, ACTOR_EXCHANGE),
        .counters = actor->counters,
    };

    return record_save(saver, &ACTOR_RECORD, &row, NULL);
}

int actors_save(const struct message_context *context, struct saver *saver)
{
    struct saved_writer row = {0};
    const struct actor *actor;
    size_t cursor = 0;
    int r;

    saved_put_number(&row, context->last_message);
    saved_put_number(&row, context->schedules.last_id);
    saved_put_bytes(&row, context->retired, sizeof(context->retired));
    saved_put_number(&row, KEPT);
    r = saved_add(saver, MESSAGES_ROW, &row, NULL);
    while (r == 0 && (actor = actor_next(&context->actors, &cursor)))
        r = save_actor(actor, saver);
    return r;
}

int messages_inherit(struct message_context *context, struct saved_reader *row)
{
    const uint64_t last_message = saved_get_number(row), last_timer = saved_get_number(row);
    size_t size;
    const void *retired = saved_get_bytes(row, &size);
    const uint64_t kept = saved_get_number(row);

    if (row->damaged || size != sizeof(context->retired))
        return -EBADMSG;
    context->last_message = last_message;
    context->schedules.last_id = last_timer;
    memcpy(context->retired, retired, size);
    context->kept |= MEMORY_KEPT_ASKS | (uint32_t)(kept & KEPT);
    return 0;
}

int actor_inherit(struct message_context *context, struct saved_reader *row)
{
    struct actor_row actor = {0};

    record_get(row, &ACTOR_RECORD, &actor);
    if (row->damaged || !actor.name || actor.reference == 0)
        return -EBADMSG;
    return inheritance_add(&context->inheritance, &actor);
}

void actors_settle(struct message_context *context)
{
    struct inherited_actor *gone;

    while ((gone = inheritance_take_any(&context->inheritance))) {
        if (!gone->row.standby)
            actor_retire_name(context, gone->name);
        free(gone);
    }
}
