/* SPDX-License-Identifier: MIT */
#include "worker/nats/report.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "worker/nats/bucket.h"
#include <errno.h>
#include <string.h>

void report_init(struct report *report, struct engine *engine, const struct config *config)
{
    *report = (struct report){.engine = engine, .config = config};
}

static void forget_answer(struct report *report)
{
    json_decref(report->groups);
    report->groups = NULL;
}

/* Disconnects, and forgets the question; the next turn asks a new one. */
static void disconnect(struct report *report)
{
    forget_answer(report);
    troupe_query_free(report->query);
    report->query = NULL;
}

void report_deinit(struct report *report)
{
    disconnect(report);
}

void report_wake(struct report *report)
{
    report->next_at = 0;
}

void report_sleep(struct report *report)
{
    disconnect(report);
}

/* ---- to the engine ---- */

static void note_trouble(struct report *report, const char *problem)
{
    if (!report->in_trouble)
        log_warning("other machines cannot see this one: %s; if the bucket " BUCKET_NAME
                    " is not there, \"troupe-nats setup\" makes it",
                    problem);
    report->in_trouble = true;
}

static void put(struct report *report, const char *text)
{
    _cleanup_free_ char *subject = NULL;
    int r;

    if (asprintf(&subject, BUCKET_SUBJECT "%s.%s", report->config->machine, report->config->group) <
        0) {
        subject = NULL;
        return;
    }
    r = engine_request(report->engine, subject, ENGINE_STATE_TOKEN, text);
    if (r == -EMSGSIZE)
        note_trouble(report, "it has too many groups for one message");
}

/* As described in publication.h, senders can make the engine answer here. */
static bool is_foreign(const json_t *reply)
{
    const char *stream = json_string_value(json_object_get(reply, "stream"));

    return json_object_get(reply, "type") || (stream && strcmp(stream, BUCKET_STREAM) != 0);
}

void report_note_answer(struct report *report, natsMsg *answer)
{
    json_t *reply =
        json_loadb(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), 0, NULL);
    const json_t *error = json_object_get(reply, "error");
    const char *problem = json_string_value(json_object_get(error, "description"));

    if (is_foreign(reply))
        log_debug("an answer that is not about the state of this machine");
    else if (!reply || error)
        note_trouble(report, problem ? problem : "the answer cannot be understood");
    else
        report->in_trouble = false;
    json_decref(reply);
}

void report_note_unanswered(struct report *report)
{
    note_trouble(report, "no bucket takes its state");
}

static void publish(struct report *report)
{
    json_t *document = json_pack("{s:s, s:I, s:s, s:O}", "state", "up", "every_usec",
                                 (json_int_t)report->config->state, "version", TROUPE_VERSION,
                                 "groups", report->groups);
    _cleanup_free_ char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

    json_decref(document);
    if (text)
        put(report, text);
}

void report_stop(struct report *report)
{
    put(report, "{\"state\":\"stopped\"}");
}

/* ---- from the supervisor ---- */

static json_t *number(const struct troupe_query *query, const char *field)
{
    return json_integer(troupe_query_number(query, field, 0));
}

/* Describes a group by a record of type GroupMetrics. While a worker is being replaced, its slot
 * counts once. */
static json_t *group_of(struct troupe_query *query)
{
    const int64_t cells = troupe_query_number(query, "cells", 1);
    const int64_t size = troupe_query_number(query, "size", 0) * cells;
    const int64_t n_up = troupe_query_number(query, "workers.idle", 0) +
                         troupe_query_number(query, "workers.busy", 0);

    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "name",
                     troupe_query_text(query, "name"), "type", troupe_query_text(query, "type"),
                     "state", troupe_query_text(query, "state"), "size", (json_int_t)size, "up",
                     (json_int_t)(n_up < size ? n_up : size), "queued", number(query, "queued"),
                     "running", number(query, "running"), "waiting", number(query, "waiting"),
                     "oldest_usec", number(query, "oldest_usec"));
}

static int ask(struct report *report)
{
    int r = report->query ? 0 : troupe_query_new(&report->query, NULL);

    if (r == 0)
        r = troupe_query_call(report->query, "io.troupe.Supervisor.GetMetrics", "groups", NULL, 0);
    if (r == 0)
        report->groups = json_array();
    return r == 0 && !report->groups ? -ENOMEM : r;
}

static void note_cells(struct report *report)
{
    const char *name = troupe_query_text(report->query, "name");

    if (name && strcmp(name, report->config->group) == 0)
        report->keyed = troupe_query_number(report->query, "cells", -1) >= 0;
}

/* Returns 0 when all groups have come, or -errno: -EAGAIN when more are to come. */
static int receive(struct report *report)
{
    int r;

    while ((r = troupe_query_next(report->query, 0)) == 1) {
        note_cells(report);
        if (json_array_append_new(report->groups, group_of(report->query)) < 0)
            return -ENOMEM;
    }
    return r;
}

usec_t report_process(struct report *report, usec_t now)
{
    int r = 0;

    if (!report->groups && now < report->next_at)
        return report->next_at;
    if (!report->groups) {
        report->next_at = now + report->config->state;
        r = ask(report);
    }
    if (r == 0)
        r = receive(report);
    if (r == -EAGAIN || r == -EINTR)
        return USEC_INFINITY;
    if (r == 0) {
        publish(report);
        forget_answer(report);
    } else {
        disconnect(report);
    }
    return report->next_at;
}

int report_fd(const struct report *report)
{
    /* As inquiry_fd(). */
    return report->groups ? troupe_query_fd(report->query) : -1;
}
