/* SPDX-License-Identifier: MIT */
#include "supervisor/message/schedule/schedule-save.h"

#include "supervisor/message/actor.h"
#include "supervisor/message/envelope-save.h"
#include "supervisor/message/message-context.h"
#include <errno.h>

static int save_schedule(const struct schedule *schedule, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_number(&row, schedule->id);
    saved_put_number(&row, schedule->to->reference);
    saved_put_number(&row, schedule->setter);
    saved_put_number(&row, schedule->due);
    saved_put_number(&row, schedule->period);
    saved_put_number(&row, schedule->realtime);
    saved_put_number(&row, schedule->orphan);
    topic_put(&row, &schedule->envelope->topic);
    return saved_add(saver, SCHEDULE_ROW, &row, &schedule->envelope->payload);
}

int schedules_save(const struct message_context *context, struct saver *saver)
{
    const struct schedule *schedule;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (schedule = handle_table_next(&context->schedules.handles, &cursor)))
        r = save_schedule(schedule, saver);
    return r;
}

int schedule_restore_row(struct message_context *context, struct saved_reader *row)
{
    const uint64_t id = saved_get_number(row);
    struct payload payload = PAYLOAD_NULL;
    struct schedule_options options = {.to = actor_get(context, saved_get_number(row))};
    struct topic topic;
    bool orphan;
    int r;

    options.sender = saved_get_number(row);
    options.at = saved_get_number(row);
    options.period = saved_get_number(row);
    options.realtime = saved_get_below(row, 1);
    orphan = saved_get_below(row, 1);
    r = topic_get(row, &topic);
    if (r < 0 || id == 0 || (options.period > 0 && options.period < SCHEDULE_PERIOD_MIN))
        return -EBADMSG;
    if (!options.to)
        return -ENOENT;
    r = payload_set(&payload, row->payload, row->payload_size);
    if (r < 0)
        return r;
    options.topic = &topic;
    options.payload = &payload;
    return schedule_restore(context, &options, id, orphan);
}
