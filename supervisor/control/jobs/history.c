/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs.History and PurgeHistory, and jobs that only the history knows. */

#include "supervisor/history/history.h"
#include "shared/protocol/payload-wire.h"
#include "supervisor/control/access.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/jobs.h"
#include "supervisor/control/target.h"
#include "supervisor/event/death.h"
#include "supervisor/varlink/request-parts.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- a row as a Job ---- */

static void report_contents(struct reply *reply, const struct history_row *row)
{
    if (row->key_size > 0)
        reply_text(reply, "key", row->key, row->key_size);
    reply_string_if(reply, "tags", row->tags);
    reply_string_if(reply, "reason", row->reason);
    if (row->payload_size == 0)
        return;
    reply_payload(reply, "payload_start", row->excerpt, row->excerpt_size);
    reply_uint(reply, "payload_bytes", row->payload_size);
}

static void report_causes(struct reply *reply, const struct job_facts *facts)
{
    if (facts->cause != PROTOCOL_CAUSE_NONE)
        reply_string(reply, "cause", protocol_cause_name(facts->cause));
    if (facts->failed_by != ATTEMPT_CAUSE_NONE)
        reply_string(reply, "last_failure", attempt_cause_to_string(facts->failed_by));
}

void report_past_job(struct reply *reply, const char *key, const struct history_row *row)
{
    const struct job_facts *facts = &row->facts;

    reply_object(reply, key);
    reply_string(reply, "id", row->id);
    reply_string(reply, "group", row->group);
    reply_string(reply, "state", job_state_to_string((enum job_state)row->state));
    reply_uint(reply, "attempt", facts->attempt);
    reply_uint(reply, "failed_attempts", facts->n_failed);
    reply_uint(reply, "max_attempts", (uint64_t)facts->max_retries + 1);
    reply_uint(reply, "priority", facts->priority);
    reply_uint(reply, "created_at", facts->created_at);
    reply_uint_if(reply, "started_at", facts->started_at);
    reply_uint(reply, "ended_at", facts->ended_at);
    reply_string_if(reply, "worker", row->worker);
    reply_bool(reply, "cancel_requested", false);
    report_causes(reply, facts);
    if (row->state == JOB_SUCCEEDED || row->state == JOB_REJECTED)
        reply_int(reply, "code", facts->code);
    reply_uint(reply, "submitter", facts->submitter_uid);
    if (row->open)
        report_contents(reply, row);
    else
        reply_bool(reply, "restricted", true);
    reply_bool(reply, "from_history", true);
    reply_array(reply, "attempts");
    reply_end_array(reply);
    reply_end_object(reply);
}

/* ---- calls ---- */

/* A call of the history that answers a request. */
struct past_call {
    struct history_call call; /* its owner is the request */
    void (*answer)(struct request *request, struct history_call *call);
    /* These members serve a call for one job: */
    void (*found)(struct request *request, const struct history_row *row);
    void (*missing)(struct request *request, int error);
    int error;
};

static void refuse_off(struct request *request)
{
    const struct history *history = request->context->history;

    request_fail_string(request, "HistoryOff", "problem",
                        history ? history_problem(history) : "no group has History=");
}

/* Returns a call of this client, without a filter; NULL = an error has been sent. */
static struct past_call *new_call(struct request *request)
{
    const uid_t uid = request->connection->peer.uid;
    struct history *history = request->context->history;
    struct past_call *past;

    if (!history) {
        refuse_off(request);
        return NULL;
    }
    if (!history_has_room(history, uid)) {
        request_fail_int(request, "TooManySearches", "maximum", HISTORY_CALLS_MAX);
        return NULL;
    }
    past = request_allocate(request, sizeof(*past));
    if (!past)
        return NULL;
    history_call_init(&past->call, uid);
    past->call.owner = request;
    if (access_history(request, &past->call.reader) == 0)
        return past;
    history_call_free(&past->call);
    request_internal(request, -ENOMEM);
    return NULL;
}

static void answer_in_turn(struct request *request, void *what)
{
    struct past_call *past = what;

    past->answer(request, &past->call);
}

static void free_call(struct request *request)
{
    struct past_call *past = request->state;

    history_call_free(&past->call);
}

/* The request frees the call when it ends. When the supervisor stops, it answers open calls itself.
 * If an upgrade has ended the call and was then given up, the request is answered here. */
static void on_done(struct history_call *call)
{
    struct past_call *past = list_entry(call, struct past_call, call);
    struct request *request = call->owner;

    if (!request) {
        history_call_free(call);
        return;
    }
    if (past->missing && call->error == 0 && call->n_hits == 0 && !call->complete) {
        history_begin_call(request->context->history, call);
        return;
    }
    request->drop = free_call;
    if (call->error != -ECANCELED)
        (void)request_answer_in_turn(request, answer_in_turn, past);
    else if (request->context->state != CONTROL_STOPPING)
        request_fail(request, "Restarting");
}

static void drop(struct request *request)
{
    struct past_call *past = request->state;

    history_leave(&past->call);
}

static void begin(struct request *request, struct past_call *past,
                  void (*answer)(struct request *request, struct history_call *call))
{
    past->answer = answer;
    past->call.done = on_done;
    request->state = past;
    request->drop = drop;
    history_begin_call(request->context->history, &past->call);
}

/* ---- History ---- */

static void answer_search(struct request *request, struct history_call *call)
{
    struct reply *reply;

    if (call->error < 0) {
        refuse_off(request);
        return;
    }
    reply = request_begin(request);
    reply_array(reply, "jobs");
    list_for_each_entry (row, &call->hits, struct history_row, link)
        report_past_job(reply, NULL, row);
    reply_end_array(reply);
    if (!call->complete)
        reply_uint(reply, "next", (uint64_t)call->before);
    request_end(request);
}

/* Copies a text of the request. Returns false without memory. */
static bool take_text(const struct request *request, const char *name, char **ret)
{
    const char *text = request_string(request, name);

    if (text)
        *ret = strdup(text);
    return !text || *ret;
}

/* "group" or "group/key". */
static bool take_target(const struct request *request, struct history_filter *filter)
{
    const struct varlink_bytes key = varlink_bytes(&request->parameters, "key");
    char *slash;

    if (!take_text(request, "group", &filter->group))
        return false;
    slash = filter->group ? strchr(filter->group, '/') : NULL;
    if (key.data || slash) {
        filter->key_size = key.data ? key.size : strlen(slash + 1);
        filter->key = malloc(filter->key_size + 1);
        if (!filter->key)
            return false;
        memcpy(filter->key, key.data ? key.data : slash + 1, filter->key_size);
    }
    if (slash)
        *slash = '\0';
    return true;
}

static void take_cause(struct history_filter *filter, const char *cause)
{
    const enum attempt_cause failed = attempt_cause_from_string(cause ? cause : "");

    filter->cause = filter->failed = -1;
    if (failed != ATTEMPT_CAUSE_NONE)
        filter->failed = (int)failed;
    for (int i = PROTOCOL_CAUSE_REQUESTED; cause && i <= PROTOCOL_CAUSE_DEPENDENCY; i++)
        if (strcmp(protocol_cause_name((enum protocol_cause)i), cause) == 0)
            filter->cause = i;
}

static bool take_filter(struct request *request, struct history_filter *filter)
{
    const char *state = request_string(request, "state");

    for (int i = JOB_SUCCEEDED; state && i < _JOB_N_STATES; i++)
        if (strcmp(job_state_to_string((enum job_state)i), state) == 0)
            filter->state = i;
    take_cause(filter, request_string(request, "cause"));
    filter->since = varlink_usec(&request->parameters, "since_at", 0);
    filter->until = varlink_usec(&request->parameters, "until_at", 0);
    return take_target(request, filter) && take_text(request, "tag", &filter->tag) &&
           take_text(request, "text", &filter->text);
}

static void search(struct request *request)
{
    const char *text = request_string(request, "text");
    struct past_call *past;

    if (!request_range(request, "cursor", 0, INT64_MAX) ||
        !request_range(request, "limit", 1, REQUEST_PAGE_MAX) ||
        (text && strlen(text) > HISTORY_TEXT_MAX &&
         !request_refuse(request, "text", "at most 256 bytes")) ||
        !(past = new_call(request)))
        return;
    if (!take_filter(request, &past->call.filter)) {
        history_call_free(&past->call);
        request_internal(request, -ENOMEM);
        return;
    }
    past->call.before = request_int(request, "cursor", 0);
    past->call.wanted = (size_t)request_int(request, "limit", REQUEST_PAGE_MAX);
    begin(request, past, answer_search);
}

/* ---- PurgeHistory ---- */

static void answer_purge(struct request *request, struct history_call *call)
{
    if (call->error < 0) {
        refuse_off(request);
        return;
    }
    reply_uint(request_begin(request), "purged", call->n_hits);
    request_end(request);
}

static void purge(struct request *request)
{
    struct past_call *past = new_call(request);

    if (!past)
        return;
    if (!take_text(request, "group", &past->call.filter.group)) {
        history_call_free(&past->call);
        request_internal(request, -ENOMEM);
        return;
    }
    control_log_change(request, past->call.filter.group);
    past->call.purge = true;
    begin(request, past, answer_purge);
}

/* ---- one job ---- */

static void answer_find(struct request *request, struct history_call *call)
{
    const struct past_call *past = list_entry(call, struct past_call, call);

    if (call->n_hits > 0)
        past->found(request, list_first_entry(&call->hits, struct history_row, link));
    else
        past->missing(request, past->error);
}

bool control_find_past_job(struct request *request, int error,
                           void (*found)(struct request *request, const struct history_row *row),
                           void (*missing)(struct request *request, int error))
{
    struct past_call *past;

    if (!request->context->history)
        return false;
    past = new_call(request);
    if (!past)
        return true;
    past->found = found;
    past->missing = missing;
    past->error = error;
    past->call.wanted = 1;
    if (take_text(request, "id", &past->call.filter.id)) {
        begin(request, past, answer_find);
        return true;
    }
    history_call_free(&past->call);
    request_internal(request, -ENOMEM);
    return true;
}

const struct request_method control_history_methods[] = {
    {"History", search, .changes = false},
    {"PurgeHistory", purge, .changes = true},
    {0},
};
