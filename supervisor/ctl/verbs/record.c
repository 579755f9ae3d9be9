/* SPDX-License-Identifier: MIT */

/*
 * The verb record: writes the events of some seconds as a timeline. They come over one connection.
 * Another one asks what runs at the beginning, and how many jobs wait and run.
 */

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/record/timeline.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DURATION (10 * USEC_PER_SEC)
/* Between two readings of the numbers of jobs. */
#define COUNT_INTERVAL (100 * USEC_PER_MSEC)

struct recorder {
    const struct invocation *invocation;
    struct timeline timeline;
    json_t *counted; /* the last numbers of each group */
    bool begun;
    usec_t deadline, next_count; /* monotonic */
    usec_t known_at;             /* realtime: all events until then have come */
    usec_t lost_at;              /* a former known_at; 0 = the connection is not lost */
    usec_t lost_usec;            /* how long it was lost in all */
};

/* ---- events ---- */

static struct timeline_place place_of(const json_t *event)
{
    return (struct timeline_place){json_string_value(json_object_get(event, "group")),
                                   json_string_value(json_object_get(event, "worker"))};
}

/* `outcome` NULL = the attempt begins. */
static json_t *attempt_args(const json_t *event, const char *outcome)
{
    return json_pack("{s:O*, s:O*, s:s*}", "job", json_object_get(event, "job"), "attempt",
                     json_object_get(event, "attempt"), "outcome", outcome);
}

/* Takes the numbers of a death and its cause, not what the worker wrote. */
static json_t *mark_args(const json_t *event, const json_t *death)
{
    static const char *const members[] = {"cause",       "detail",        "signal",   "exit_status",
                                          "pid",         "job",           "attempt",  "jobs_done",
                                          "uptime_usec", "max_rss_bytes", "user_usec"};
    json_t *args =
        json_pack("{s:O*, s:O*, s:O*}", "worker", json_object_get(event, "worker"), "job",
                  json_object_get(event, "job"), "message", json_object_get(event, "message"));

    for (size_t i = 0; i < ELEMENTS(members); i++)
        if (field_has(death, members[i]))
            json_object_set(args, members[i], json_object_get(death, members[i]));
    return args;
}

static void mark(struct timeline *timeline, const json_t *event, const char *type)
{
    const struct timeline_place place = place_of(event);
    const json_t *death = json_object_get(event, "death");
    const char *signal = field_text(death, "signal");
    char name[128];

    (void)snprintf(name, sizeof(name), "died: %s", *signal ? signal : field_text(death, "cause"));
    timeline_mark(timeline, &place, death ? name : type, death ? "death" : "event",
                  field_usec(event, "at"), mark_args(event, death));
}

static void take_job_event(struct timeline *timeline, const json_t *event, const char *type)
{
    const struct timeline_place place = place_of(event);
    const char *job = field_text(event, "job");
    const usec_t at = field_usec(event, "at");

    if (strcmp(type, "job.started") == 0)
        timeline_open(timeline, &place, job, "job", at, attempt_args(event, NULL));
    else if (strcmp(type, "job.dead") == 0)
        mark(timeline, event, type);
    else if (strcmp(type, "job.accepted") != 0)
        timeline_close(timeline, job, at,
                       attempt_args(event, strcmp(type, "job.ended") == 0
                                               ? field_text(event, "job_state")
                                               : strchr(type, '.') + 1));
}

/* The start of a worker is a bar, which ends with the next event of the process. */
static void take_event(struct timeline *timeline, const json_t *event)
{
    const struct timeline_place place = place_of(event);
    const char *type = field_text(event, "type");
    const usec_t at = field_usec(event, "at");
    char key[1024];

    if (strncmp(type, "job.", 4) == 0) {
        take_job_event(timeline, event, type);
        return;
    }
    (void)snprintf(key, sizeof(key), "start of %s, process %lld", field_text(event, "worker"),
                   (long long)field_int(event, "generation"));
    if (place.worker && strcmp(type, "worker.started") == 0) {
        timeline_open(timeline, &place, key, "start", at, json_object());
        return;
    }
    timeline_close(timeline, key, at, json_pack("{s:s}", "outcome", type));
    if (strcmp(type, "worker.ready") != 0)
        mark(timeline, event, type);
}

/* ---- what runs, and the numbers ---- */

static void take_workers(struct timeline *timeline, const char *group, const json_t *workers,
                         json_t *running)
{
    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);
        const struct timeline_place place = {group, field_text(worker, "name")};
        const char *job = field_text(worker, "job");

        timeline_add_row(timeline, &place);
        /* It may have a job that it has not begun. */
        if (!field_has(worker, "job_since_at"))
            continue;
        json_object_set_new(running, job, json_true());
        timeline_open(timeline, &place, job, "job", field_usec(worker, "job_since_at"),
                      json_pack("{s:s}", "job", job));
    }
}

/* Takes what runs now. Jobs that were running when the connection was lost, and are not now, ended
 * at an unknown time. */
static int take_running(struct recorder *recorder, struct invocation *asks)
{
    struct timeline *timeline = &recorder->timeline;
    json_auto_t *status = NULL, *running = json_object();
    const json_t *groups;
    int r = parts_of_status(asks, invocation_operand(recorder->invocation, 1), false, &status);

    if (r != EXIT_OK)
        return r;
    if (!recorder->begun)
        timeline->begin = clock_realtime();
    groups = json_object_get(status, "groups");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i), *cells = json_object_get(group, "cells");
        const char *name = field_text(group, "name");

        take_workers(timeline, name, json_object_get(group, "workers"), running);
        for (size_t k = 0; k < json_array_size(cells); k++)
            take_workers(timeline, name, json_object_get(json_array_get(cells, k), "workers"),
                         running);
    }
    if (recorder->lost_at > 0)
        timeline_cut(timeline, recorder->lost_at, "connection lost", running);
    return EXIT_OK;
}

static int take_counts(struct recorder *recorder, struct invocation *asks)
{
    json_auto_t *status = NULL;
    const usec_t at = clock_realtime();
    const json_t *groups;
    int r = parts_of_status(asks, invocation_operand(recorder->invocation, 1), true, &status);

    groups = json_object_get(status, "groups");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        const char *name = field_text(group, "name");
        const uint64_t waiting = field_count(group, "queued") + field_count(group, "waiting") +
                                 field_count(group, "pending");
        json_t *counts = json_pack("{s:I, s:I}", "waiting", (json_int_t)waiting, "running",
                                   (json_int_t)field_count(group, "running"));

        if (!json_equal(counts, json_object_get(recorder->counted, name))) {
            json_object_set(recorder->counted, name, counts);
            timeline_count(&recorder->timeline, name, "jobs", at, counts);
        } else {
            json_decref(counts);
        }
    }
    recorder->next_count = clock_deadline(COUNT_INTERVAL);
    return r;
}

/* ---- the connections ---- */

static bool is_over(const struct recorder *recorder)
{
    return interrupt_seen() || clock_left(recorder->deadline) == 0;
}

/* Receives one reply within the time. Returns EXIT_TIMEOUT if none came, and EXIT_UNREACHABLE if
 * the connection is lost. */
static int receive(struct recorder *recorder, struct varlink_client *events, usec_t timeout)
{
    struct varlink_reply reply;
    const json_t *items;
    int r;

    events->timeout = timeout;
    r = varlink_client_receive(events, &reply);
    if (r == -ETIMEDOUT) {
        recorder->known_at = clock_realtime();
        return EXIT_TIMEOUT;
    }
    if (r < 0)
        return EXIT_UNREACHABLE;
    items = json_object_get(reply.parameters, "events");
    for (size_t i = 0; i < json_array_size(items); i++) {
        take_event(&recorder->timeline, json_array_get(items, i));
        recorder->known_at = field_usec(json_array_get(items, i), "at");
    }
    if (reply.error && !varlink_reply_is(&reply, CALL_SUPERVISOR "Stopping") &&
        !varlink_reply_is(&reply, CALL_SUPERVISOR "Restarting"))
        r = explain_error(reply.error, reply.parameters);
    else if (!reply.continues)
        r = EXIT_UNREACHABLE;
    varlink_reply_deinit(&reply);
    return r;
}

/* Takes the last numbers, and the events before their reply. */
static void drain(struct recorder *recorder, struct invocation *asks, struct varlink_client *events)
{
    const usec_t until = clock_deadline(CALL_TIMEOUT);
    int r = take_counts(recorder, asks);

    while (r == EXIT_OK && clock_left(until) > 0)
        r = receive(recorder, events, 0);
}

static void tell_begin(struct recorder *recorder)
{
    const usec_t duration = clock_left(recorder->deadline);

    if (!recorder->begun && !recorder->invocation->options.quiet)
        complain("recording for %s; Ctrl-C ends it", SPAN(duration));
    recorder->begun = true;
    if (recorder->lost_at > 0)
        recorder->lost_usec += usec_sub(clock_realtime(), recorder->lost_at);
    recorder->lost_at = 0;
}

/* The answer to the second call shows that the supervisor has read the call for events, so no event
 * after that answer is missed. */
static int subscribe(struct recorder *recorder, struct invocation *asks,
                     struct varlink_client *events)
{
    json_auto_t *info = NULL;
    int r =
        varlink_client_send(events, CALL_SUPERVISOR "Watch",
                            json_pack("{s:s*, s:b}", "target",
                                      invocation_operand(recorder->invocation, 1), "jobs", true),
                            true);

    if (r < 0)
        return EXIT_UNREACHABLE;
    r = call(asks, CALL_SUPERVISOR "GetInfo", json_object(), false, &info);
    if (r == EXIT_OK)
        r = take_running(recorder, asks);
    if (r != EXIT_OK)
        return r;
    r = receive(recorder, events, 0); /* for an error */
    if (r == EXIT_OK || r == EXIT_TIMEOUT)
        tell_begin(recorder);
    return r == EXIT_TIMEOUT ? EXIT_OK : r;
}

static int record(struct recorder *recorder, struct invocation *asks, struct varlink_client *events)
{
    int r = subscribe(recorder, asks, events);

    while (r == EXIT_OK && !is_over(recorder)) {
        if (clock_left(recorder->next_count) == 0)
            r = take_counts(recorder, asks);
        while (r == EXIT_OK && clock_left(recorder->next_count) > 0 && !is_over(recorder))
            r = receive(recorder, events, clock_left(recorder->next_count));
        if (r == EXIT_TIMEOUT)
            r = EXIT_OK;
    }
    if (r == EXIT_OK)
        drain(recorder, asks, events);
    return r;
}

static int record_once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    struct recorder *recorder = userdata;
    struct varlink_client events;
    int r = varlink_client_init(&events, invocation_socket(invocation), CALL_TIMEOUT);

    if (r < 0)
        return EXIT_UNREACHABLE;
    r = call_open(invocation);
    if (r == EXIT_OK)
        reconnect_done(reconnect);
    if (r == EXIT_OK)
        r = record(recorder, invocation, &events);
    varlink_client_deinit(&events);
    if (r != EXIT_UNREACHABLE)
        return r;
    varlink_client_deinit(&invocation->client);
    if (recorder->begun && recorder->lost_at == 0) {
        recorder->lost_at = recorder->known_at;
        timeline_mark(&recorder->timeline, &(struct timeline_place){0},
                      "events lost: connection lost", "lost", recorder->lost_at, json_object());
    }
    return recorder->begun && is_over(recorder) ? EXIT_OK : r;
}

/* ---- the verb ---- */

static void tell_end(const struct recorder *recorder)
{
    const struct timeline *timeline = &recorder->timeline;

    if (recorder->lost_usec > 0)
        complain("the connection was lost for %s: events of that time are missing",
                 SPAN(recorder->lost_usec));
    if (timeline->n_left_out > 0)
        complain("%s bars and marks are left out: there are more than %s workers",
                 COUNT(timeline->n_left_out), COUNT(TIMELINE_ROWS_MAX));
    if (!recorder->invocation->options.quiet)
        terminal_print(&recorder->invocation->out, "%s: %s job attempts and starts",
                       invocation_operand(recorder->invocation, 0), COUNT(timeline->n_bars));
}

static int finish(struct recorder *recorder)
{
    struct timeline *timeline = &recorder->timeline;
    const usec_t now = clock_realtime();

    if (recorder->lost_at > 0)
        recorder->lost_usec += usec_sub(now, recorder->lost_at);
    timeline_cut(timeline, recorder->lost_at > 0 ? recorder->lost_at : now,
                 recorder->lost_at > 0 ? "connection lost" : "end of the recording", NULL);
    return timeline_finish(
        timeline, json_pack("{s:I, s:I, s:I, s:I, s:s*}", "begin_at", (json_int_t)timeline->begin,
                            "end_at", (json_int_t)now, "lost_usec", (json_int_t)recorder->lost_usec,
                            "left_out", (json_int_t)timeline->n_left_out, "target",
                            invocation_operand(recorder->invocation, 1)));
}

int verb_record(struct invocation *invocation)
{
    const char *path = invocation_operand(invocation, 0);
    const usec_t duration = invocation->options.duration;
    struct recorder recorder = {.invocation = invocation, .counted = json_object()};
    struct output_file file;
    int status = EXIT_FAILED, r = output_file_open(&file, path);

    if (r == 0) {
        recorder.deadline = clock_deadline(duration > 0 ? duration : DURATION);
        timeline_init(&recorder.timeline, file.file, clock_realtime());
        interrupt_catch();
        status = reconnect_run(invocation, USEC_INFINITY, record_once, &recorder);
        /* A recording that has begun is kept, even if the supervisor has not come back. */
        if (recorder.begun && status == EXIT_UNREACHABLE)
            status = EXIT_OK;
        r = finish(&recorder);
        r = output_file_close(&file, status != EXIT_OK && r == 0 ? -ECANCELED : r);
        if (status == EXIT_OK && r == 0)
            tell_end(&recorder);
        timeline_deinit(&recorder.timeline);
    }
    json_decref(recorder.counted);
    if (r < 0 && r != -ECANCELED) {
        complain("cannot write %s: %s", path, strerror(-r));
        return EXIT_FAILED;
    }
    return r < 0 ? status : EXIT_OK;
}
