/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: Schedule, Unschedule, ListTimers. */

#include "supervisor/message/schedule/schedule.h"
#include "shared/base/cleanup.h"
#include "supervisor/control/actors/actors.h"
#include "supervisor/control/actors/report-actor.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/paged-list.h"
#include "supervisor/message/message-context.h"
#include <stdlib.h>
#include <string.h>

struct schedule_parameters {
    struct control_message_parameters message;
    struct varlink_int delay, at, period;
};

static void schedule(struct request *request)
{
    const struct schedule_parameters *given = request->parameters;
    _cleanup_(control_message_deinit)
    struct control_message message = CONTROL_MESSAGE_NULL;
    struct schedule_options options = {
        .realtime = given->at.set,
        .at = (usec_t)(given->at.set ? given->at.value : given->delay.value),
        .period = (usec_t)given->period.value,
    };
    uint64_t id;
    int r;

    if (given->delay.set == given->at.set) {
        request_refuse(request, "delay_usec", "either this or at");
        return;
    }
    if (!control_take_message(request, &given->message, &message))
        return;
    options.to = message.actor;
    options.topic = &message.topic;
    options.payload = &message.payload;
    r = schedule_add(request->context->messages, &options, &id);
    if (r == SCHEDULE_E_TOO_MANY || r == SCHEDULE_E_SHARE) {
        request_fail_string(request, "TooMany", "what", "timers");
    } else if (r < 0) {
        request_internal(request, r);
    } else {
        reply_uint(request_begin(request), "id", id);
        request_end(request);
    }
}

struct timer_parameters {
    struct varlink_int id;
    const char *to, *type;
    struct control_page page;
};

/* Timers cancelled per part. */
#define CANCELLED_PER_PART 32

/* Cancels an actor's timers of one type in parts. */
struct cancellation {
    struct request_parts parts;
    uint64_t to;     /* reference */
    uint64_t n, max; /* max: those armed at the start; more may be added meanwhile */
};

static bool cancel_part(struct request_parts *parts)
{
    struct cancellation *all = list_entry(parts, struct cancellation, parts);
    const struct timer_parameters *given = parts->request->parameters;
    struct actor *actor = actor_get(parts->request->context->messages, all->to);
    unsigned n = 0;

    if (actor)
        n = schedule_cancel_type(actor, given->type, (uint32_t)strlen(given->type), NULL,
                                 CANCELLED_PER_PART);
    all->n += n;
    return n < CANCELLED_PER_PART || all->n >= all->max;
}

static void finish_cancelling(struct request_parts *parts)
{
    reply_uint(request_part_reply(parts), "cancelled",
               list_entry(parts, struct cancellation, parts)->n);
}

static void free_cancellation(struct request_parts *parts)
{
    free(list_entry(parts, struct cancellation, parts));
}

static void cancel_type(struct request *request, const char *to)
{
    const struct actor *actor = control_find_actor(request, to);
    struct cancellation *all = actor ? request_allocate(request, sizeof(*all)) : NULL;

    if (!all)
        return;
    all->parts = (struct request_parts){
        .write = cancel_part, .finish = finish_cancelling, .free = free_cancellation};
    all->to = actor->reference;
    all->max = request->context->messages->schedules.n_armed;
    request_in_parts(request, &all->parts);
}

static void unschedule(struct request *request)
{
    const struct timer_parameters *given = request->parameters;

    if (given->id.set == (given->to && given->type)) {
        request_refuse(request, "id", "either this, or both to and type");
    } else if (!given->id.set) {
        cancel_type(request, given->to);
    } else if (schedule_cancel(request->context->messages, (uint64_t)given->id.value, NULL) == 0) {
        request_fail_int(request, "NoSuchTimer", "id", given->id.value);
    } else {
        reply_uint(request_begin(request), "cancelled", 1);
        request_end(request);
    }
}

/* The cursor is an index of the timer table, which is constant for each timer. */
struct timers {
    struct control_list list;
    uint64_t to; /* reference of the only recipient; 0 = all */
};

static void report_schedule(struct reply *reply, const struct schedule *schedule)
{
    const struct envelope *envelope = schedule->envelope;

    reply_object(reply, NULL);
    reply_uint(reply, "id", schedule->id);
    reply_string(reply, "to", schedule->to->name);
    report_topic(reply, &envelope->topic);
    reply_uint(reply, "next_at", alarm_realtime(&schedule->alarm));
    reply_uint_if(reply, "period_usec", schedule->period);
    reply_string_if(reply, "owner", actor_name_of(schedule->context, envelope->sender));
    reply_uint(reply, "payload_bytes", envelope->payload.size);
    reply_end_object(reply);
}

static bool step_timers(struct control_list *list)
{
    const struct handle_table *table = &list->parts.request->context->messages->schedules.handles;
    const uint64_t to = list_entry(list, struct timers, list)->to;
    const struct schedule *schedule;

    if (list->cursor >= table->n_entries)
        return false;
    schedule = table->entries[list->cursor++].object;
    if (schedule && (to == 0 || schedule->to->reference == to))
        report_schedule(control_list_item(list), schedule);
    return true;
}

static void list_timers(struct request *request)
{
    const struct timer_parameters *given = request->parameters;
    const struct actor *to = given->to ? control_find_actor(request, given->to) : NULL;
    struct timers *timers;

    if (given->to && !to)
        return;
    timers = request_allocate(request, sizeof(*timers));
    if (!timers)
        return;
    timers->list.step = step_timers;
    timers->to = to ? to->reference : 0;
    control_list(request, &timers->list, "timers", &given->page);
}

static const struct varlink_parameter schedule_table[] = {
    CONTROL_MESSAGE_ROWS(schedule_parameters),
    VARLINK_ROW("delay_usec", INT, schedule_parameters, delay,
                .allowed = "microseconds, 0 or more"),
    VARLINK_ROW("at", INT, schedule_parameters, at, .allowed = "microseconds since 1970"),
    VARLINK_ROW("period_usec", INT, schedule_parameters, period, .allowed = "1000 or more",
                .min = SCHEDULE_PERIOD_MIN),
    {0},
};
static const struct varlink_parameter unschedule_table[] = {
    VARLINK_ROW("id", INT, timer_parameters, id),
    VARLINK_ROW("to", STRING, timer_parameters, to),
    VARLINK_ROW("type", STRING, timer_parameters, type),
    {0},
};
static const struct varlink_parameter list_table[] = {
    VARLINK_ROW("to", STRING, timer_parameters, to),
    CONTROL_PAGE_ROWS(timer_parameters),
    {0},
};

const struct request_method control_timer_methods[] = {
    {"Schedule", schedule, schedule_table, .changes = true, .begins = true},
    {"Unschedule", unschedule, unschedule_table, .changes = true},
    {"ListTimers", list_timers, list_table, .changes = false},
    {0},
};
