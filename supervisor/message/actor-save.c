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

static int save_actor(const struct actor *actor, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_number(&row, actor->reference);
    saved_put_text(&row, actor->name);
    saved_put_number(&row, actor->place != NULL);
    saved_put_number(&row, is_needed(actor));
    saved_put_number(&row, actor_is(actor, ACTOR_EXCHANGE));
    return saved_add(saver, ACTOR_ROW, &row, NULL);
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
    const uint64_t reference = saved_get_number(row);
    char name[INHERITED_NAME_MAX];
    struct inherited_actor *added;
    bool standby, needed, exchange;

    saved_get_text(row, name, sizeof(name));
    standby = saved_get_below(row, 1);
    needed = saved_get_below(row, 1);
    exchange = saved_get_below(row, 1);
    if (row->damaged || reference == 0 || reference > INT64_MAX)
        return -EBADMSG;
    added = inheritance_add(&context->inheritance, name);
    if (!added)
        return -ENOMEM;
    added->reference = reference;
    added->standby = standby;
    if (needed)
        inheritance_need(&context->inheritance, added);
    added->exchange = exchange;
    return 0;
}

void actors_settle(struct message_context *context)
{
    struct inherited_actor *gone;

    while ((gone = inheritance_take_any(&context->inheritance))) {
        if (!gone->standby)
            actor_retire_name(context, gone->name);
        free(gone);
    }
}
