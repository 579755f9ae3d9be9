/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: Watch and ListDeaths. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/paged-list.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/event/event.h"
#include <stdlib.h>
#include <string.h>

/* The cursor is the id of the last event looked at. */
struct watch {
    struct control_list list;
    struct event_subscriber subscriber, jobs;
};

#define watch_of(pointer, member) list_entry(pointer, struct watch, member)

static const char *target_of(const struct control_list *list)
{
    return request_string(list->parts.request, "target");
}

static bool step_events(struct control_list *list)
{
    const struct event *event = event_after(list->parts.request->context->events, list->cursor);

    if (!event)
        return false;
    list->cursor = event->id;
    if (report_event_matches(event, target_of(list)))
        report_event(control_list_item(list), list->parts.request, event);
    return true;
}

static void watch_tell(const struct watch *watch, const struct event *event)
{
    struct request *request = watch->list.parts.request;
    struct reply *reply;

    if (!report_event_matches(event, target_of(&watch->list)))
        return;
    reply = request_begin(request);
    reply_array(reply, "events");
    report_event(reply, request, event);
    reply_end_array(reply);
    request_end_more(request);
}

static void on_event(struct event_subscriber *subscriber, const struct event *event)
{
    watch_tell(watch_of(subscriber, subscriber), event);
}

static void on_job_event(struct event_subscriber *subscriber, const struct event *event)
{
    watch_tell(watch_of(subscriber, jobs), event);
}

static void stay_for_events(struct control_list *list)
{
    struct event_bus *bus = list->parts.request->context->events;
    struct watch *watch = watch_of(list, list);

    event_subscribe(&bus->subscribers, &watch->subscriber);
    if (request_bool(list->parts.request, "jobs"))
        event_subscribe(&bus->job_subscribers, &watch->jobs);
}

static void free_watch(struct control_list *list)
{
    event_unsubscribe(&watch_of(list, list)->subscriber);
    event_unsubscribe(&watch_of(list, list)->jobs);
    free(watch_of(list, list));
}

static void watch(struct request *request)
{
    const char *target = request_string(request, "target");
    struct watch *watch;

    if (target && !control_find_ever(request, target))
        return;
    /* Events of single jobs slow down every job. */
    if (request_bool(request, "jobs") &&
        !access_demand(request, registry_group_of(request->context->registry, target),
                       "events of single jobs slow all down"))
        return;
    watch = request_allocate(request, sizeof(*watch));
    if (!watch)
        return;
    list_init(&watch->subscriber.link);
    watch->subscriber.fn = on_event;
    list_init(&watch->jobs.link);
    watch->jobs.fn = on_job_event;
    watch->list.step = step_events;
    watch->list.stay = stay_for_events;
    watch->list.free = free_watch;
    /* Without replay, starts behind the last event. */
    if (request_wants_more(request) && !request_bool(request, "replay") &&
        !request_has(request, "cursor"))
        watch->list.cursor = request->context->events->last_id;
    control_list(request, &watch->list, "events");
}

/* Newest first: the cursor of the call is the id of the last one looked at. */
struct deaths {
    struct control_list list;
    struct list_cursor at;
};

#define deaths_of(pointer) list_entry(pointer, struct deaths, list)

static bool matches(const struct death *death, const struct request *request)
{
    const char *job = request_string(request, "job"), *target = request_string(request, "target");

    return (!target || report_is_below(death->worker, target)) &&
           (!job || strcmp(death->job, job) == 0);
}

static bool step_deaths(struct control_list *list)
{
    const struct death_log *log = list->parts.request->context->deaths;
    struct deaths *deaths = deaths_of(list);
    const struct death *death;

    if (!deaths->at.at || deaths->at.at == &log->deaths)
        return false;
    death = list_entry(deaths->at.at, struct death, link);
    list_cursor_advance(&deaths->at);
    if (list->cursor != 0 && death->serial >= list->cursor)
        return true; /* on an earlier page */
    list->cursor = death->serial;
    if (matches(death, list->parts.request))
        report_death(control_list_item(list), NULL, list->parts.request, death);
    return true;
}

static void free_deaths(struct control_list *list)
{
    list_cursor_end(&deaths_of(list)->at);
    free(deaths_of(list));
}

static void list_deaths(struct request *request)
{
    const char *target = request_string(request, "target");
    struct death_log *log = request->context->deaths;
    struct deaths *deaths;

    if (target && !control_find_ever(request, target))
        return;
    deaths = request_allocate(request, sizeof(*deaths));
    if (!deaths)
        return;
    deaths->list.step = step_deaths;
    deaths->list.free = free_deaths;
    list_cursor_begin(&deaths->at, &log->cursors, &log->deaths, false);
    control_list(request, &deaths->list, "deaths");
}

const struct request_method control_watch_methods[] = {
    {"Watch", watch, .changes = false},
    {"ListDeaths", list_deaths, .changes = false},
    {0},
};
