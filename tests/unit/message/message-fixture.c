/* SPDX-License-Identifier: MIT */
#include "tests/unit/message/message-fixture.h"

#include "supervisor/event/death.h"
#include "supervisor/event/event.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/message/delivery/delivery.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"

void set_up_messages(struct message_context *context)
{
    message_context_init(context);
    context->loop = new_loop();
    context->alarms = malloc(sizeof(*context->alarms));
    alarms_init(context->alarms, context->loop);
    context->events = calloc(1, sizeof(*context->events));
    ck_assert_int_eq(event_bus_init(context->events), 0);
    context->deaths = malloc(sizeof(*context->deaths));
    death_log_init(context->deaths, 1);
    dead_letters_resize(&context->dead_letters, 1000, 1 << 20);
}

void tear_down_messages(struct message_context *context)
{
    message_context_deinit(context);
    death_log_deinit(context->deaths);
    free(context->deaths);
    event_bus_deinit(context->events);
    free(context->events);
    alarms_deinit(context->alarms);
    free(context->alarms);
    loop_free(context->loop);
}

const struct actor_class INBOX = {
    .kind = ACTOR_CLIENT, .deliver = delivery_to_inbox, .feed = delivery_feed_inbox};

struct actor *make_actor(struct message_context *context, const struct actor_class *class,
                         const char *name)
{
    const struct actor_options options = {.class = class, .name = name};
    struct actor *actor;

    ck_assert_int_eq(actor_new(&actor, context, &options), 0);
    return actor;
}

struct topic topic_of(const char *type)
{
    return (struct topic){.type = type, .type_size = (uint32_t)strlen(type)};
}

/* ---- an upgrade ---- */

struct message_context before, after;
struct memory_saver saver;

void set_up_upgrade(void)
{
    set_up_messages(&before);
    set_up_messages(&after);
    memory_saver_init(&saver);
}

void tear_down_upgrade(void)
{
    tear_down_messages(&before);
    tear_down_messages(&after);
    memory_saver_deinit(&saver);
}

int restore(const char *kind, restore_fn fn)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < saver.n_rows; i++)
        if (strcmp(saver.rows[i].kind, kind) == 0) {
            struct saved_reader row = memory_saver_read(&saver, i, kind);

            r = fn(&after, &row);
        }
    return r;
}

static void check_damaged(void *userdata, struct saved_reader *row)
{
    const restore_fn fn = *(restore_fn *)userdata;
    int r = fn(&after, row);

    ck_assert(r == 0 || r == -EBADMSG || r == -ENOENT);
}

void restore_damaged(size_t i, restore_fn fn)
{
    memory_saver_damage(&saver, i, check_damaged, &fn);
}
