/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: Watch and ListDeaths. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/event/event.h"
#include "supervisor/varlink/request-parts.h"
#include <stdlib.h>
#include <string.h>

/* The cursor is the id of the last event looked at. */
struct watch {
    struct request_parts parts;
    struct event_subscriber subscriber;
    struct job_subscriber jobs;
};

#define watch_of(pointer, member) list_entry(pointer, struct watch, member)

static const char *target_of(const struct request_parts *parts)
{
    return request_string(parts->request, "target");
}

static bool step_events(struct request_parts *parts)
{
    const struct event *event = event_after(parts->request->context->events, parts->cursor);

    if (!event)
        return false;
    parts->cursor = event->id;
    if (report_event_matches(event, target_of(parts)))
        report_event(request_part_item(parts), parts->request, event);
    return true;
}

/* Many may watch, so each gets the events when its turn comes, but before they are dropped. */
#define BEHIND_MAX (EVENTS_KEPT / 2)

static void on_event(struct event_subscriber *subscriber, const struct event *event)
{
    struct request_parts *parts = &watch_of(subscriber, subscriber)->parts;

    if (event->id - parts->cursor >= BEHIND_MAX)
        request_parts_flush(parts);
    else if (report_event_matches(event, target_of(parts)))
        request_parts_wake(parts);
}

static bool wants_jobs(const struct request *request)
{
    return request_bool(request, "jobs") || request_bool(request, "traced");
}

static void on_job_event(struct job_subscriber *subscriber, const struct event *event)
{
    struct request_parts *parts = &watch_of(subscriber, jobs)->parts;

    if (!report_event_matches(event, target_of(parts)))
        return;
    request_parts_flush(parts); /* those that came before it */
    report_event(request_part_item(parts), parts->request, event);
    request_parts_flush(parts);
}

static void stay_for_events(struct request_parts *parts)
{
    struct event_bus *bus = parts->request->context->events;
    struct watch *watch = watch_of(parts, parts);

    if (list_linked(&watch->subscriber.link))
        return;
    /* The cursor may be that of an earlier supervisor. */
    if (parts->cursor > bus->last_id)
        parts->cursor = bus->last_id;
    event_subscribe(&bus->subscribers, &watch->subscriber);
    if (!wants_jobs(parts->request))
        return;
    watch->jobs.untraced = request_bool(parts->request, "jobs");
    event_subscribe_jobs(bus, &watch->jobs, target_of(parts));
}

static void free_watch(struct request_parts *parts)
{
    struct watch *watch = watch_of(parts, parts);

    event_unsubscribe(&watch->subscriber);
    event_unsubscribe_jobs(parts->request->context->events, &watch->jobs);
    free(watch);
}

static void watch(struct request *request)
{
    const char *target = request_string(request, "target");
    struct watch *watch;

    if (target && !control_find_ever(request, target))
        return;
    /* Events of single jobs slow down every job of the target. */
    if (wants_jobs(request) &&
        !access_demand(request, registry_group_of(request->context->registry, target),
                       "events of single jobs slow these down"))
        return;
    watch = request_allocate(request, sizeof(*watch));
    if (!watch)
        return;
    list_init(&watch->subscriber.link);
    watch->subscriber.fn = on_event;
    watch->jobs.fn = on_job_event;
    watch->parts.step = step_events;
    watch->parts.stay = stay_for_events;
    watch->parts.free = free_watch;
    /* Without replay, starts behind the last event. */
    if (request_wants_more(request) && !request_bool(request, "replay") &&
        !request_has(request, "cursor"))
        watch->parts.cursor = request->context->events->last_id;
    request_in_pages(request, &watch->parts, "events");
}

/* Newest first: the cursor of the call is the id of the last one looked at. */
struct deaths {
    struct request_parts parts;
    struct list_cursor at;
};

#define deaths_of(pointer) list_entry(pointer, struct deaths, parts)

static bool matches(const struct death *death, const struct request *request)
{
    const char *job = request_string(request, "job"), *target = request_string(request, "target");

    return (!target || report_is_below(death->worker, target)) &&
           (!job || strcmp(death->job, job) == 0);
}

static bool step_deaths(struct request_parts *parts)
{
    const struct death_log *log = parts->request->context->deaths;
    struct deaths *deaths = deaths_of(parts);
    const struct death *death;

    if (!deaths->at.at || deaths->at.at == &log->deaths)
        return false;
    death = list_entry(deaths->at.at, struct death, link);
    list_cursor_advance(&deaths->at);
    if (parts->cursor != 0 && death->serial >= parts->cursor)
        return true; /* on an earlier page */
    parts->cursor = death->serial;
    if (matches(death, parts->request))
        report_death(request_part_item(parts), NULL, parts->request, death, true);
    return true;
}

static void free_deaths(struct request_parts *parts)
{
    list_cursor_end(&deaths_of(parts)->at);
    free(deaths_of(parts));
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
    deaths->parts.step = step_deaths;
    deaths->parts.free = free_deaths;
    list_cursor_begin(&deaths->at, &log->cursors, &log->deaths, false);
    request_in_pages(request, &deaths->parts, "deaths");
}

const struct request_method control_watch_methods[] = {
    {"Watch", watch, .changes = false},
    {"ListDeaths", list_deaths, .changes = false},
    {0},
};
