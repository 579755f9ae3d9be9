/* SPDX-License-Identifier: MIT */
#include "supervisor/message/schedule/schedule-save.h"

#include "supervisor/message/actor.h"
#include "supervisor/message/envelope-save.h"
#include "supervisor/message/message-context.h"
#include <errno.h>

#define ROW schedule
#define SCHEDULE_FIELDS(F)                                                                         \
    F(UPGRADE, id, NUMBER(id))                                                                     \
    F(UPGRADE, setter, NUMBER(setter))                                                             \
    F(UPGRADE, due, NUMBER(due))                                                                   \
    F(UPGRADE, period, NUMBER(period))                                                             \
    F(UPGRADE, realtime, NUMBER(realtime))
static const struct field FIELDS[] = {SCHEDULE_FIELDS(FIELD)};
const struct record SCHEDULE_RECORD = RECORD(SCHEDULE_ROW, FIELDS);

static int save_schedule(const struct schedule *schedule, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_number(&row, schedule->recipient->actor->reference);
    record_put(&row, &SCHEDULE_RECORD, schedule);
    topic_put(&row, &schedule->envelope->topic);
    return saved_add(saver, SCHEDULE_ROW, &row, &schedule->envelope->payload);
}

int schedules_save(const struct actor *to, struct saver *saver)
{
    int r = 0;

    if (!to->scheduled)
        return 0;
    list_for_each (node, &to->scheduled->schedules) {
        r = save_schedule(list_entry(node, struct schedule, link), saver);
        if (r < 0)
            break;
    }
    return r;
}

int schedule_restore_row(struct message_context *context, struct saved_reader *row)
{
    struct payload payload = PAYLOAD_NULL;
    struct schedule_options options = {.to = actor_get(context, saved_get_number(row))};
    struct schedule saved = {0};
    struct topic topic;
    int r;

    record_get(row, &SCHEDULE_RECORD, &saved);
    options.sender = saved.setter;
    options.at = saved.due;
    options.period = saved.period;
    options.realtime = saved.realtime;
    r = topic_get(row, &topic);
    if (r < 0 || saved.id == 0 || (options.period > 0 && options.period < SCHEDULE_PERIOD_MIN))
        return -EBADMSG;
    if (!options.to)
        return -ENOENT;
    r = payload_set(&payload, row->payload, row->payload_size);
    if (r < 0)
        return r;
    options.topic = &topic;
    options.payload = &payload;
    return schedule_restore(context, &options, saved.id);
}
