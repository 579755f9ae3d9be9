/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-save.h"

#include "shared/base/log.h"
#include "shared/protocol/protocol-requests.h"
#include "shared/ring/memory.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/inheritance.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/monitor.h"
#include <errno.h>
#include <string.h>

/* What is saved for workers and clients. */
#define KEPT (MEMORY_KEPT_ASKS | MEMORY_KEPT_MONITORS | MEMORY_KEPT_REQUESTS | MEMORY_KEPT_TIES)

/* Whether messages wait for it, or others count on it: it is to be there after the upgrade. */
static bool is_needed(const struct actor *actor)
{
    return !mailbox_idle(&actor->mailbox) || schedule_count_for(actor) > 0 ||
           !list_empty(&actor->observers) || !list_empty(&actor->names) ||
           actor->subscriptions.n_subscriptions > 0;
}

#define ROW message_context
#define MESSAGES_FIELDS(F)                                                                         \
    F(UPGRADE, last_message, NUMBER(last_message))                                                 \
    F(UPGRADE, last_timer, NUMBER(schedules.last_id))                                              \
    F(UPGRADE, retired, ARRAY(retired))
static const struct field MESSAGES[] = {MESSAGES_FIELDS(FIELD)};
const struct record MESSAGES_RECORD = RECORD(MESSAGES_ROW, MESSAGES);

int actor_save(const struct actor *actor, struct saver *saver)
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

int actors_save_each(const struct message_context *context, struct saver *saver,
                     int (*save)(const struct actor *actor, struct saver *saver))
{
    const struct actor *actor;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (actor = actor_next(&context->actors, &cursor)))
        r = save(actor, saver);
    return r;
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

    if (inheritance_read(row, &actor) == 0)
        actor_retire_name(userdata, actor.name);
}

void actors_settle(struct message_context *context)
{
    (void)waiting_room_settle(&context->inherited, ACTOR_ROW, retire, context);
    (void)waiting_room_settle(&context->inherited, STANDBY_ROW, NULL, NULL);
}

/* ---- names ---- */

/* Without the own names of clients and exchanges, which have them from the start. */
int actor_names_save(const struct actor *actor, struct saver *saver)
{
    int r = 0;

    list_for_each (node, &actor->names) {
        const char *name = list_entry(node, struct actor_name, link)->name;
        struct saved_writer row = {0};

        if (strcmp(name, actor->name) == 0)
            continue;
        saved_put_number(&row, actor->reference);
        saved_put_text(&row, name);
        r = saved_add(saver, ACTOR_NAME_ROW, &row, NULL);
        if (r < 0)
            break;
    }
    return r;
}

int actor_name_restore_row(struct message_context *context, struct saved_reader *row)
{
    struct actor *actor = actor_get(context, saved_get_number(row));
    char name[PROTOCOL_ACTOR_NAME_MAX + 1];
    int r;

    saved_get_text(row, name, sizeof(name));
    if (row->damaged)
        return -EBADMSG;
    if (!actor)
        return 0; /* its names have ended with it */
    r = actor_register(actor, name);
    if (r == ACTOR_E_EXISTS) {
        log_warning("%s loses the name %s, which it had registered: a file declares it",
                    actor->name, name);
        return 0;
    }
    return r > 0 ? -EBADMSG : r;
}

/* ---- monitors ---- */

/* In the order in which they are notified. */
int monitors_save(const struct actor *monitored, struct saver *saver)
{
    int r = 0;

    list_for_each (node, &monitored->observers) {
        const struct monitor *monitor = list_entry(node, struct monitor, link);
        struct saved_writer row = {0};

        saved_put_number(&row, monitored->reference);
        saved_put_number(&row, monitor->observer->reference);
        r = saved_add(saver, MONITOR_ROW, &row, NULL);
        if (r < 0)
            break;
    }
    return r;
}

int monitor_restore_row(struct message_context *context, struct saved_reader *row)
{
    const uint64_t monitored = saved_get_number(row);
    struct actor *observer = actor_get(context, saved_get_number(row));
    int r;

    if (row->damaged || monitored == 0)
        return -EBADMSG;
    if (!observer || !observer->inbox.endpoint)
        return 0; /* the caller has gone */
    r = monitor_add(observer, monitored);
    return r == MONITOR_E_TOO_MANY ? -EBADMSG : r;
}
