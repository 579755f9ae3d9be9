/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: Schedule, Unschedule, ListTimers. */

#include "supervisor/control/actors/actors.h"

#include "supervisor/control/control-context.h"
#include "supervisor/control/list.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/schedule/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct schedule_parameters {
    struct control_message_parameters message;
    struct varlink_int delay, at, period;
};

static bool take_times(struct request *request, const struct schedule_parameters *given,
                       struct schedule_options *ret)
{
    if (given->delay.set == given->at.set)
        return control_refuse_option(request, "delay_usec", "either this or at");
    ret->realtime = given->at.set;
    if (given->at.set && given->at.value < 0)
        return control_refuse_option(request, "at", "microseconds since 1970");
    if (given->delay.set && given->delay.value < 0)
        return control_refuse_option(request, "delay_usec", "microseconds, 0 or more");
    ret->at = (usec_t)(given->at.set ? given->at.value : given->delay.value);
    if (!given->period.set)
        return true;
    if (given->period.value < (int64_t)SCHEDULE_PERIOD_MIN)
        return control_refuse_option(request, "period_usec", "1000 or more");
    ret->period = (usec_t)given->period.value;
    return true;
}

void control_schedule(struct request *request)
{
    static const struct varlink_parameter table[] = {
        CONTROL_MESSAGE_ROWS(struct schedule_parameters),
        {"delay_usec", VARLINK_INT, false, offsetof(struct schedule_parameters, delay)},
        {"at", VARLINK_INT, false, offsetof(struct schedule_parameters, at)},
        {"period_usec", VARLINK_INT, false, offsetof(struct schedule_parameters, period)},
        {0},
    };
    __attribute__((cleanup(control_message_deinit))) struct control_message message =
        CONTROL_MESSAGE_NULL;
    struct schedule_parameters parameters = {0};
    struct schedule_options options = {0};
    uint64_t id;
    int r;

    if (!request_take(request, table, &parameters) || !take_times(request, &parameters, &options) ||
        !control_take_message(request, &parameters.message, &message))
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

struct unschedule_parameters {
    struct varlink_int id;
    const char *to, *type;
};

/* Timers cancelled per part. */
#define CANCELLED_PER_PART 32

/* Cancels an actor's timers of one type in parts. */
struct cancellation {
    struct request_parts parts;
    uint64_t to;      /* reference */
    const char *type; /* borrowed from the call */
    uint64_t n, max;  /* max: those armed at the start; more may be added meanwhile */
};

static bool cancel_part(struct request_parts *parts)
{
    struct cancellation *all = list_entry(parts, struct cancellation, parts);
    struct actor *actor = actor_get(&parts->request->context->messages->actors, all->to);
    unsigned n = 0;

    if (actor)
        n = schedule_cancel_type(actor, all->type, (uint32_t)strlen(all->type), NULL,
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

static void cancel_type(struct request *request, const char *to, const char *type)
{
    const struct actor *actor = control_find_actor(request, to);
    struct cancellation *all;

    if (!actor)
        return;
    all = calloc(1, sizeof(*all));
    if (!all) {
        request_internal(request, -ENOMEM);
        return;
    }
    all->parts = (struct request_parts){
        .write = cancel_part, .finish = finish_cancelling, .free = free_cancellation};
    all->to = actor->reference;
    all->type = type;
    all->max = request->context->messages->schedules.n_armed;
    request_in_parts(request, &all->parts);
}

void control_unschedule(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"id", VARLINK_INT, false, offsetof(struct unschedule_parameters, id)},
        {"to", VARLINK_STRING, false, offsetof(struct unschedule_parameters, to)},
        {"type", VARLINK_STRING, false, offsetof(struct unschedule_parameters, type)},
        {0},
    };
    struct unschedule_parameters parameters = {0};

    if (!request_take(request, table, &parameters))
        return;
    if (parameters.id.set == (parameters.to && parameters.type)) {
        control_refuse_option(request, "id", "either this, or both to and type");
        return;
    }
    if (!parameters.id.set) {
        cancel_type(request, parameters.to, parameters.type);
        return;
    }
    if (schedule_cancel(request->context->messages, (uint64_t)parameters.id.value, NULL) == 0) {
        request_fail_int(request, "NoSuchTimer", "id", parameters.id.value);
        return;
    }
    reply_uint(request_begin(request), "cancelled", 1);
    request_end(request);
}

struct timers_parameters {
    const char *to;
    struct control_page page;
};

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
    reply_text(reply, "type", envelope->topic.type, envelope->topic.type_size);
    if (envelope->topic.key)
        reply_text(reply, "key", envelope->topic.key, envelope->topic.key_size);
    reply_uint(reply, "next_at", schedule_due(schedule));
    reply_uint_if(reply, "period_usec", schedule->period);
    reply_string_if(reply, "owner", actor_name_of(&schedule->context->actors, envelope->sender));
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

void control_list_timers(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"to", VARLINK_STRING, false, offsetof(struct timers_parameters, to)},
        CONTROL_PAGE_ROWS(struct timers_parameters),
        {0},
    };
    struct timers_parameters parameters = {0};
    const struct actor *to = NULL;
    struct timers *timers;

    if (!request_take(request, table, &parameters) || !control_take_page(request, &parameters.page))
        return;
    if (parameters.to) {
        to = control_find_actor(request, parameters.to);
        if (!to)
            return;
    }
    timers = calloc(1, sizeof(*timers));
    if (!timers) {
        request_internal(request, -ENOMEM);
        return;
    }
    timers->list.step = step_timers;
    timers->to = to ? to->reference : 0;
    control_list(request, &timers->list, "timers", &parameters.page);
}
