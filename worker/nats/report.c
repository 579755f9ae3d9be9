/* SPDX-License-Identifier: MIT */
#include "worker/nats/report.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <errno.h>
#include <string.h>

/* Tokens. */
#define REPORT      ((const char[]){ENGINE_STATE, '\0'})
#define LAST_REPORT ((const char[]){ENGINE_STATE, 'e', '\0'})

void report_init(struct report *report, struct engine *engine, const struct config *config)
{
    *report = (struct report){.engine = engine, .config = config};
}

void report_deinit(struct report *report)
{
    json_decref(report->groups);
}

static void note_trouble(struct report *report, const char *problem)
{
    if (!report->in_trouble)
        log_warning("other machines cannot see this one: %s; if the bucket " BUCKET_NAME
                    " is not there, \"troupe-nats setup\" makes it",
                    problem);
    report->in_trouble = true;
}

static void put(struct report *report, const char *token, const char *text)
{
    _cleanup_free_ char *subject = NULL;
    int r;

    if (asprintf(&subject, BUCKET_SUBJECT "%s.%s", report->config->machine, report->config->group) <
        0) {
        subject = NULL;
        return;
    }
    r = engine_request(report->engine, subject, token, text);
    if (r == -EMSGSIZE)
        note_trouble(report, "it has too many groups for one message");
}

/* As described in publication.h, senders can make the engine answer here. */
static bool is_foreign(const json_t *reply)
{
    const char *stream = json_string_value(json_object_get(reply, "stream"));

    return json_object_get(reply, "type") || (stream && strcmp(stream, BUCKET_STREAM) != 0);
}

void report_note_answer(struct report *report, const char *token, natsMsg *answer)
{
    json_auto_t *reply = engine_json(answer);
    const char *problem;
    const json_int_t error = engine_json_error(reply, &problem);

    report->stopped = report->stopped || strcmp(token, LAST_REPORT) == 0;
    if (natsMsg_IsNoResponders(answer))
        note_trouble(report, "no bucket takes its state");
    else if (is_foreign(reply))
        log_debug("an answer that is not about the state of this machine");
    else if (!reply || error)
        note_trouble(report, problem ? problem : "the answer cannot be understood");
    else
        report->in_trouble = false;
}

static void publish(struct report *report)
{
    json_t *document = json_pack("{s:s, s:I, s:s, s:O}", "state", "up", "every_usec",
                                 (json_int_t)report->config->state, "version", TROUPE_VERSION,
                                 "groups", report->groups);
    _cleanup_free_ char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

    json_decref(document);
    if (text)
        put(report, REPORT, text);
}

void report_stop(struct report *report)
{
    put(report, LAST_REPORT, "{\"state\":\"stopped\"}");
}

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

bool report_is_due(struct report *report, usec_t now)
{
    if (now < report->next_at)
        return false;
    report->next_at = now + report->config->state;
    return true;
}

static void add_group(struct report *report, struct troupe_query *query)
{
    const char *name = troupe_query_text(query, "name");

    if (name && strcmp(name, report->config->group) == 0)
        report->keyed = troupe_query_number(query, "cells", -1) >= 0;
    (void)json_array_append_new(report->groups, group_of(query));
}

void report_note(struct report *report, enum inquiry_answer answer, struct troupe_query *query)
{
    switch (answer) {
    case INQUIRY_BEGIN:
        json_decref(report->groups);
        report->groups = json_array();
        break;
    case INQUIRY_RECORD:
        add_group(report, query);
        break;
    case INQUIRY_END:
        if (report->engine->connected)
            publish(report);
        break;
    default:
        break;
    }
}
