/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: Watch, ListDeaths and GetLog. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/list.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/event/event.h"
#include "supervisor/group/group.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/capture.h"
#include "supervisor/varlink/request-parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Watch ---- */

/* The cursor is the id of the last event looked at. */
struct watch {
    struct control_list list;
    struct event_subscriber subscriber;
    struct event_subscriber jobs;
    bool wants_jobs;    /* events of single jobs as well */
    const char *target; /* NULL = all; borrowed from the call */
};

#define watch_of(pointer, member) list_entry(pointer, struct watch, member)

static bool step_events(struct control_list *list)
{
    const struct access access = access_of(list->parts.request);
    const struct event *event = event_after(list->parts.request->context->events, list->cursor);

    if (!event)
        return false;
    list->cursor = event->id;
    if (report_event_matches(event, watch_of(list, list)->target))
        report_event(control_list_item(list), &access, event);
    return true;
}

static void watch_tell(const struct watch *watch, const struct event *event)
{
    struct request *request = watch->list.parts.request;
    const struct access access = access_of(request);
    struct reply *reply;

    if (!report_event_matches(event, watch->target))
        return;
    reply = request_begin(request);
    reply_array(reply, "events");
    report_event(reply, &access, event);
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

    event_subscribe(bus, &watch->subscriber);
    if (watch->wants_jobs)
        event_watch_jobs(bus, &watch->jobs);
}

static void free_watch(struct control_list *list)
{
    event_unsubscribe(&watch_of(list, list)->subscriber);
    event_unsubscribe(&watch_of(list, list)->jobs);
    free(watch_of(list, list));
}

struct watch_parameters {
    const char *target;
    bool replay, jobs;
    struct control_page page;
};

void control_watch(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"target", VARLINK_STRING, false, offsetof(struct watch_parameters, target)},
        {"replay", VARLINK_BOOL, false, offsetof(struct watch_parameters, replay)},
        CONTROL_PAGE_ROWS(struct watch_parameters),
        {"jobs", VARLINK_BOOL, false, offsetof(struct watch_parameters, jobs)},
        {0},
    };
    struct watch_parameters parameters = {0};
    struct watch *watch;

    if (!request_take(request, table, &parameters) || !control_take_page(request, &parameters.page))
        return;
    if (parameters.target && !control_find_ever(request, parameters.target))
        return;
    /* Events of single jobs slow down every job. */
    if (parameters.jobs &&
        !access_demand_address(request, parameters.target, "events of single jobs slow all down"))
        return;
    watch = calloc(1, sizeof(*watch));
    if (!watch) {
        request_internal(request, -ENOMEM);
        return;
    }
    list_init(&watch->subscriber.link);
    watch->subscriber.fn = on_event;
    list_init(&watch->jobs.link);
    watch->jobs.fn = on_job_event;
    watch->wants_jobs = parameters.jobs;
    watch->target = parameters.target;
    watch->list.step = step_events;
    watch->list.stay = stay_for_events;
    watch->list.free = free_watch;
    /* Without replay, starts behind the last event. */
    if (request_wants_more(request) && !parameters.replay && !parameters.page.cursor.set)
        parameters.page.cursor =
            (struct varlink_int){true, (int64_t)request->context->events->last_id};
    control_list(request, &watch->list, "events", &parameters.page);
}

/* ---- ListDeaths ---- */

/* Newest first: the cursor of the call is the id of the last one looked at. */
struct deaths {
    struct control_list list;
    struct list_cursor at;
    const char *target; /* borrowed from the call */
};

#define deaths_of(pointer) list_entry(pointer, struct deaths, list)

static bool step_deaths(struct control_list *list)
{
    const struct access access = access_of(list->parts.request);
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
    if (report_death_matches(death, deaths->target))
        report_death(control_list_item(list), NULL, &access, death);
    return true;
}

static void free_deaths(struct control_list *list)
{
    list_cursor_end(&deaths_of(list)->at);
    free(deaths_of(list));
}

struct deaths_parameters {
    const char *target;
    struct control_page page;
};

void control_list_deaths(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"target", VARLINK_STRING, false, offsetof(struct deaths_parameters, target)},
        CONTROL_PAGE_ROWS(struct deaths_parameters),
        {0},
    };
    struct death_log *log = request->context->deaths;
    struct deaths_parameters parameters = {0};
    struct deaths *deaths;

    if (!request_take(request, table, &parameters) || !control_take_page(request, &parameters.page))
        return;
    if (parameters.target && !control_find_ever(request, parameters.target))
        return;
    deaths = calloc(1, sizeof(*deaths));
    if (!deaths) {
        request_internal(request, -ENOMEM);
        return;
    }
    deaths->target = parameters.target;
    deaths->list.step = step_deaths;
    deaths->list.free = free_deaths;
    list_cursor_begin(&deaths->at, &log->cursors, &log->deaths, false);
    control_list(request, &deaths->list, "deaths", &parameters.page);
}

/* ---- GetLog ---- */

/* Room for a raw line of the tail, or an escaped one as followers get it. */
#define LINE_MAX_SIZE CAPTURE_ESCAPED_MAX(CAPTURE_LINE_MAX)
_Static_assert(LINE_MAX_SIZE >= CAPTURE_TAIL_MAX, "either fits");

/* Prefixes the line with `worker`, if given. */
static void report_line(struct reply *reply, const char *worker, const char *line, size_t size)
{
    char text[DEATH_WORKER_MAX + LINE_MAX_SIZE + 2];
    size_t length;

    if (!worker) {
        reply_text(reply, NULL, line, size);
        return;
    }
    length = (size_t)snprintf(text, DEATH_WORKER_MAX + 2, "%s: ", worker);
    memcpy(text + length, line, size);
    reply_text(reply, NULL, text, length + size);
}

static void report_output(struct reply *reply, const struct slot *slot, bool with_name)
{
    char output[CAPTURE_TAIL_MAX + 1];
    size_t size = process_last_output(&slot->worker.process, 0, output, sizeof(output));

    /* A new worker without output shows its predecessor's last output. */
    if (size == 0 && slot->last_death && slot->last_death->stderr_text) {
        size = slot->last_death->stderr_size;
        memcpy(output, slot->last_death->stderr_text, size);
    }
    for (size_t start = 0; start < size && reply->size < REPORT_DETAIL_MAX;) {
        const char *end = memchr(output + start, '\n', size - start);
        size_t length = end ? (size_t)(end - output) - start : size - start;

        report_line(reply, with_name ? slot->name : NULL, output + start, length);
        start += length + 1;
    }
}

struct log {
    struct request_parts parts;
    struct event_line_subscriber follower;
    const char *target; /* borrowed from the call */
    uint64_t group;     /* its reference */
    bool whole_group;
    unsigned index; /* of the only worker */
    bool only_worker;
    struct cell_cursor cells;
    const struct cell *cell; /* the cursor's, valid only while they are equal */
    size_t worker;           /* cursor */
};

#define log_of(pointer) list_entry(pointer, struct log, parts)

/* The next worker; NULL at the end. */
static const struct slot *next_of_log(struct log *log, const struct group *group)
{
    while (log->cells.next) {
        const struct slot *slot;

        if (log->cells.next != log->cell)
            log->worker = 0;
        log->cell = log->cells.next;
        slot = pool_next_slot(&log->cell->pool, &log->worker);
        if (slot)
            return slot;
        if (!log->whole_group)
            return NULL;
        cell_cursor_advance(&log->cells, &group->cells);
    }
    return NULL;
}

static bool write_log(struct request_parts *parts)
{
    struct log *log = log_of(parts);
    const struct group *group = registry_get(parts->request->context->registry, log->group);
    const struct slot *slot;

    do {
        slot = group ? next_of_log(log, group) : NULL;
        if (!slot)
            return true;
        if (!log->only_worker || (slot->index == log->index && slot->role == SLOT_MEMBER))
            report_output(request_part_reply(parts), slot, !log->only_worker);
    } while (!request_part_full(parts, 1));
    return false;
}

/* Whether `target` is the worker, its cell or its group. */
static bool is_of(const char *worker, const char *target)
{
    const size_t size = strlen(target);

    return strncmp(worker, target, size) == 0 && (worker[size] == '\0' || worker[size] == '/');
}

static void on_line(struct event_line_subscriber *follower, const char *worker, const char *line)
{
    struct log *log = list_entry(follower, struct log, follower);
    struct request *request = log->parts.request;
    const struct access access = access_of(request);
    struct reply *reply;

    if (!is_of(worker, log->target))
        return;
    /* A reload may have changed the client's permissions, or the group behind the name. */
    if (!access_group(&access, registry_get(request->context->registry, log->group)))
        return;
    reply = request_begin(request);
    reply_array(reply, "lines");
    report_line(reply, log->only_worker ? NULL : worker, line, strlen(line));
    reply_end_array(reply);
    request_end_more(request);
}

static void stay_for_lines(struct request_parts *parts)
{
    event_subscribe_lines(parts->request->context->events, &log_of(parts)->follower);
}

static void free_log(struct request_parts *parts)
{
    event_unsubscribe_lines(&log_of(parts)->follower);
    cell_cursor_end(&log_of(parts)->cells);
    free(log_of(parts));
}

struct log_parameters {
    const char *target;
    bool follow;
};

void control_get_log(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"target", VARLINK_STRING, true, offsetof(struct log_parameters, target)},
        {"follow", VARLINK_BOOL, false, offsetof(struct log_parameters, follow)},
        {0},
    };
    struct log_parameters parameters = {0};
    struct registry_target target;
    struct log *log;

    if (!request_take(request, table, &parameters) ||
        !control_find_target(request, parameters.target, &target) ||
        !access_demand(request, target.group, "this shows what workers wrote"))
        return;
    log = calloc(1, sizeof(*log));
    if (!log) {
        request_internal(request, -ENOMEM);
        return;
    }
    log->parts = (struct request_parts){.array = "lines",
                                        .may_continue = true,
                                        .write = write_log,
                                        .stay = parameters.follow ? stay_for_lines : NULL,
                                        .free = free_log};
    list_init(&log->follower.link);
    log->follower.fn = on_line;
    log->target = parameters.target;
    log->group = target.group->reference;
    log->whole_group = !target.cell;
    log->only_worker = target.slot != NULL;
    log->index = target.slot ? target.slot->index : 0;
    if (target.cell)
        cell_cursor_at(&log->cells, target.cell);
    else
        cell_cursor_begin(&log->cells, &target.group->cells);
    request_in_parts(request, &log->parts);
}
