/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: what happened. Events, deaths, and what workers wrote. */

#include "capture.h"
#include "context.h"
#include "control-target.h"
#include "group.h"
#include "report.h"
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
    struct reply *reply;
    int64_t n = 0;

    if (!request_take(request, table, &parameters))
        return;
    if (parameters.limit.value < 1) {
        request_invalid(request, "limit");
        return;
    }
    if (parameters.target && !control_find_ever(request, parameters.target))
        return;
    reply = request_begin(request);
    reply_array(reply, "deaths");
    list_for_each (node, &request->context->deaths.deaths) {
        const struct death *death = list_entry(node, struct death, link);

        if (n == parameters.limit.value)
            break;
        if (!report_death_matches(death, parameters.target))
            continue;
        report_death(reply, NULL, death);
        n++;
    }
    reply_end_array(reply);
    request_end(request);
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
    size_t size = process_last_output(&slot->process, output, sizeof(output));

    /* A new worker that has not said anything yet: what its predecessor said last is of interest.
     */
    if (size == 0 && slot->last_death && slot->last_death->stderr_text) {
        size = strnlen(slot->last_death->stderr_text, sizeof(output) - 1);
        memcpy(output, slot->last_death->stderr_text, size);
    }
    for (size_t start = 0; start < size && reply->size < REPORT_DETAIL_MAX;) {
        const char *end = memchr(output + start, '\n', size - start);
        size_t length = end ? (size_t)(end - output) - start : size - start;

        report_line(reply, with_name ? slot->name : NULL, output + start, length);
        start += length + 1;
    }
}

static void report_outputs(struct reply *reply, const struct cell *cell)
{
    const struct slot *slot;
    size_t cursor = 0;

    while ((slot = cell_next_slot(cell, &cursor)))
        report_output(reply, slot, true);
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
    struct reply *reply;

    if (!request_take(request, table, &parameters) ||
        !control_find_target(request, parameters.target, &target))
        return;
    reply = request_begin(request);
    reply_array(reply, "lines");
    if (target.slot)
        report_output(reply, target.slot, false);
    else if (target.cell)
        report_outputs(reply, target.cell);
    else
        group_each_cell (cell, target.group)
            report_outputs(reply, cell);
    reply_end_array(reply);
    request_end(request);
}
