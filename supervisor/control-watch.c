/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: what happened. Events, deaths, and what workers wrote. */

#include "capture.h"
#include "context.h"
#include "control-payload.h"
#include "control-target.h"
#include "group.h"
#include "report.h"
#include "request-parts.h"
#include "slot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Watch ---- */

struct watch {
    struct event_subscriber subscriber;
    struct request *request;
    char *target; /* NULL = everything */
};

struct watch_parameters {
    const char *target;
    bool replay;
};

static void tell_event(struct request *request, const struct event *event)
{
    struct reply *reply = request_begin(request);

    reply_array(reply, "events");
    report_event(reply, event);
    reply_end_array(reply);
    request_end_more(request);
}

static void on_event(struct event_subscriber *subscriber, const struct event *event)
{
    struct watch *watch = list_entry(subscriber, struct watch, subscriber);

    if (report_event_matches(event, watch->target))
        tell_event(watch->request, event);
}

static void drop_watch(struct request *request)
{
    struct watch *watch = request->state;

    event_unsubscribe(&watch->subscriber);
    free(watch->target);
    free(watch);
}

static void list_events(struct request *request, const char *target)
{
    const struct event_bus *bus = &request->context->events;
    struct reply *reply = request_begin(request);
    const struct event *event;

    reply_array(reply, "events");
    for (size_t i = 0; (event = event_kept(bus, i)); i++)
        if (report_event_matches(event, target))
            report_event(reply, event);
    reply_end_array(reply);
    request_end(request);
}

/* A thousand reports of deaths could be more than a client may leave unread: then the oldest go
 * without. */
static void replay_events(struct request *request, const char *target)
{
    const struct event_bus *bus = &request->context->events;
    const struct event *event;

    for (size_t i = 0; (event = event_kept(bus, i)); i++) {
        struct event copy = *event;

        if (connection_unread(request->connection) > REPORT_DETAIL_MAX)
            copy.death = NULL;
        if (report_event_matches(event, target))
            tell_event(request, &copy);
    }
}

void control_watch(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"target", VARLINK_STRING, false, offsetof(struct watch_parameters, target)},
        {"replay", VARLINK_BOOL, false, offsetof(struct watch_parameters, replay)},
        {0},
    };
    struct watch_parameters parameters = {0};
    struct watch *watch;

    if (!request_take(request, table, &parameters))
        return;
    if (parameters.target && !control_find_ever(request, parameters.target))
        return;
    if (!request_wants_more(request)) {
        list_events(request, parameters.target);
        return;
    }
    watch = calloc(1, sizeof(*watch));
    if (watch && parameters.target)
        watch->target = strdup(parameters.target);
    if (!watch || (parameters.target && !watch->target)) {
        free(watch);
        request_internal(request, -ENOMEM);
        return;
    }
    watch->request = request;
    watch->subscriber.fn = on_event;
    request->state = watch;
    request->drop = drop_watch;
    if (parameters.replay)
        replay_events(request, watch->target);
    event_subscribe(&request->context->events, &watch->subscriber);
}

/* ---- ListDeaths ---- */

struct deaths {
    struct request_parts parts;
    char *target;
    int64_t left;
    struct death *last; /* the one looked at last; NULL = none yet */
};

#define deaths_of(pointer) list_entry(pointer, struct deaths, parts)

static bool write_deaths(struct request_parts *parts)
{
    struct deaths *deaths = deaths_of(parts);
    struct death *death;

    do {
        death = death_log_next(&parts->request->context->deaths, deaths->last);
        if (!death || deaths->left == 0)
            return true;
        death_ref(death);
        death_unref(deaths->last);
        deaths->last = death;
        if (!report_death_matches(death, deaths->target))
            continue;
        report_death(request_part_reply(parts), NULL, death);
        deaths->left--;
    } while (!request_part_full(parts, 1));
    return false;
}

static void free_deaths(struct request_parts *parts)
{
    struct deaths *deaths = deaths_of(parts);

    death_unref(deaths->last);
    free(deaths->target);
    free(deaths);
}

struct deaths_parameters {
    const char *target;
    struct varlink_int limit;
};

void control_list_deaths(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"target", VARLINK_STRING, false, offsetof(struct deaths_parameters, target)},
        {"limit", VARLINK_INT, false, offsetof(struct deaths_parameters, limit)},
        {0},
    };
    struct deaths_parameters parameters = {.limit = {.value = INT64_MAX}};
    struct deaths *deaths;

    if (!request_take(request, table, &parameters))
        return;
    if (parameters.limit.value < 1) {
        control_refuse_option(request, "limit", "1 or more");
        return;
    }
    if (parameters.target && !control_find_ever(request, parameters.target))
        return;
    deaths = calloc(1, sizeof(*deaths));
    if (deaths && parameters.target)
        deaths->target = strdup(parameters.target);
    if (!deaths || (parameters.target && !deaths->target)) {
        free(deaths);
        request_internal(request, -ENOMEM);
        return;
    }
    deaths->left = parameters.limit.value;
    deaths->parts = (struct request_parts){
        .array = "deaths", .may_continue = true, .write = write_deaths, .free = free_deaths};
    request_in_parts(request, &deaths->parts);
}

/* ---- GetLog ---- */

/* With the worker's name before each line if there are several. */
static void report_line(struct reply *reply, const char *worker, const char *line, size_t size)
{
    char text[DEATH_WORKER_MAX + CAPTURE_TAIL_MAX + 2];
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
    size_t size = process_last_output(&slot->process, 0, output, sizeof(output));

    /* A new worker that has not said anything yet: what its predecessor said last is of interest.
     */
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
    uint64_t group; /* its reference */
    bool whole_group;
    unsigned index; /* of the only worker */
    bool only_worker;
    struct cell_cursor cells;
    const struct cell *cell; /* that of the cursor, if it is still there */
    size_t worker;           /* cursor */
};

#define log_of(pointer) list_entry(pointer, struct log, parts)

/* The next worker; NULL behind the last. */
static const struct slot *next_of_log(struct log *log, const struct group *group)
{
    while (log->cells.next) {
        const struct slot *slot;

        if (log->cells.next != log->cell)
            log->worker = 0;
        log->cell = log->cells.next;
        slot = cell_next_slot(log->cell, &log->worker);
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
    const struct group *group = registry_get(&parts->request->context->registry, log->group);
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

static void free_log(struct request_parts *parts)
{
    cell_cursor_end(&log_of(parts)->cells);
    free(log_of(parts));
}

struct log_parameters {
    const char *target;
};

void control_get_log(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"target", VARLINK_STRING, true, offsetof(struct log_parameters, target)},
        {0},
    };
    struct log_parameters parameters = {0};
    struct registry_target target;
    struct log *log;

    if (!request_take(request, table, &parameters) ||
        !control_find_target(request, parameters.target, &target))
        return;
    log = calloc(1, sizeof(*log));
    if (!log) {
        request_internal(request, -ENOMEM);
        return;
    }
    log->parts = (struct request_parts){
        .array = "lines", .may_continue = true, .write = write_log, .free = free_log};
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
