/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs.History and PurgeHistory, and jobs that only the history knows. */

#include "supervisor/history/history.h"
#include "shared/base/cleanup.h"
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
    if (row->sizes[HISTORY_KEY] > 0)
        reply_text(reply, "key", history_row_text(row, HISTORY_KEY), row->sizes[HISTORY_KEY]);
    reply_string_if(reply, "tags", history_row_text(row, HISTORY_TAGS));
    reply_string_if(reply, "reason", history_row_text(row, HISTORY_REASON));
    if (row->payload_size == 0)
        return;
    reply_payload(reply, "payload_start", history_row_text(row, HISTORY_EXCERPT),
                  row->sizes[HISTORY_EXCERPT]);
    reply_uint(reply, "payload_bytes", row->payload_size);
}

static void report_causes(struct reply *reply, const struct job_facts *facts)
{
    if (facts->cause != PROTOCOL_CAUSE_NONE)
        reply_string(reply, "cause", protocol_cause_name(facts->cause));
    if (facts->failed_by != ATTEMPT_CAUSE_NONE)
        reply_string(reply, "last_failure", attempt_cause_to_string(facts->failed_by));
}

static void report_row(struct reply *reply, const char *key, const struct history_row *row)
{
    const struct job_facts *facts = &row->facts;

    reply_object(reply, key);
    reply_string(reply, "id", history_row_text(row, HISTORY_ID));
    reply_string(reply, "group", row->group->name);
    reply_string(reply, "state", job_state_to_string(row->state));
    reply_uint(reply, "attempt", facts->attempt);
    reply_uint(reply, "failed_attempts", facts->n_failed);
    reply_uint(reply, "max_attempts", (uint64_t)facts->max_retries + 1);
    reply_uint(reply, "priority", facts->priority);
    reply_uint(reply, "created_at", facts->created_at);
    reply_uint_if(reply, "started_at", facts->started_at);
    reply_uint(reply, "ended_at", facts->ended_at);
    reply_string_if(reply, "worker", history_row_text(row, HISTORY_WORKER));
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

/* Returns the number of the row. */
static int64_t report_hit(struct reply *reply, const char *key, struct list *hit)
{
    struct history_row *row = list_entry(hit, struct history_row, link);
    const int64_t number = row->number;

    list_unlink(hit);
    report_row(reply, key, row);
    free(row);
    return number;
}

/* ---- calls ---- */

static void refuse_off(struct request *request)
{
    const struct history *history = request->context->history;

    request_fail_string(request, "HistoryOff", "problem",
                        history ? history_problem(history) : "no group has History=");
}

/* Returns a call of this client, without a filter; NULL = an error has been sent. */
static struct history_call *new_call(struct request *request)
{
    const uid_t uid = request->connection->peer.uid;
    struct history *history = request->context->history;
    struct history_call *call;

    if (!history) {
        refuse_off(request);
        return NULL;
    }
    if (!history_has_room(history, uid)) {
        request_fail_int(request, "TooManySearches", "maximum", HISTORY_CALLS_MAX);
        return NULL;
    }
    call = request_allocate(request, sizeof(*call));
    if (!call)
        return NULL;
    history_call_init(call, uid);
    if (access_history(request, &call->reader) == 0)
        return call;
    history_call_free(call);
    request_internal(request, -ENOMEM);
    return NULL;
}

/* ---- History ---- */

struct page {
    struct request_parts parts;
    struct history_call *call;
    bool asked; /* the history has this call, or has answered it */
    bool busy;  /* it has it */
};

#define page_of(pointer) list_entry(pointer, struct page, parts)

static void on_page(struct history_call *call)
{
    struct page *page = call->owner;

    if (!page) {
        history_call_free(call);
        return;
    }
    page->busy = false;
    if (call->error == -ECANCELED) /* the supervisor ends, and answers open calls itself */
        return;
    if (call->error < 0) {
        refuse_off(page->parts.request);
        return;
    }
    request_parts_resume(&page->parts);
}

/* Asks once a page, and reports what was found within a time, if it is complete or not. */
static bool step(struct request_parts *parts)
{
    struct page *page = page_of(parts);
    struct list *hit = list_first(&page->call->hits);

    if (hit) {
        parts->cursor = (uint64_t)report_hit(request_part_item(parts), NULL, hit);
        return true;
    }
    if (page->asked) {
        parts->cursor = (uint64_t)page->call->before;
        parts->left = 0;
        return !page->call->complete;
    }
    page->asked = page->busy = parts->waits = true;
    page->call->before = (int64_t)parts->cursor;
    page->call->wanted = parts->left;
    history_begin_call(parts->request->context->history, page->call);
    return true;
}

static void free_page(struct request_parts *parts)
{
    struct page *page = page_of(parts);

    if (page->busy)
        history_leave(page->call);
    else
        history_call_free(page->call);
    free(page);
}

/* Copies a text of the request. Returns false without memory. */
static bool take_text(const struct request *request, const char *name, char **ret)
{
    const char *text = request_string(request, name);

    if (text)
        *ret = strdup(text);
    return !text || *ret;
}

static bool take_searched(const struct request *request, struct history_filter *filter)
{
    if (!take_text(request, "text", &filter->text))
        return false;
    filter->text_size = filter->text ? strlen(filter->text) : 0;
    return true;
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
           take_searched(request, filter);
}

static void search(struct request *request)
{
    struct history_call *call;
    struct page *page;

    if (!request_range(request, "cursor", 0, INT64_MAX) || !(call = new_call(request)))
        return;
    page = take_filter(request, &call->filter) ? request_allocate(request, sizeof(*page)) : NULL;
    if (!page) {
        history_call_free(call);
        return;
    }
    page->parts = (struct request_parts){.step = step, .free = free_page};
    page->call = call;
    call->owner = page;
    call->done = on_page;
    request_in_pages(request, &page->parts, "jobs");
}

/* ---- PurgeHistory ---- */

static void on_purged(struct history_call *call)
{
    struct request *request = call->owner;
    const int error = call->error;
    const uint64_t n = call->n_hits;

    history_call_free(call);
    if (!request || error == -ECANCELED)
        return;
    request->drop = NULL;
    if (error < 0) {
        refuse_off(request);
        return;
    }
    reply_uint(request_begin(request), "purged", n);
    request_end(request);
}

/* The purge continues without its client. */
static void drop_purge(struct request *request)
{
    struct history_call *call = request->state;

    call->owner = NULL;
}

static void purge(struct request *request)
{
    struct history_call *call = new_call(request);

    if (!call)
        return;
    if (!take_text(request, "group", &call->filter.group)) {
        history_call_free(call);
        request_internal(request, -ENOMEM);
        return;
    }
    control_log_change(request, call->filter.group);
    call->purge = true;
    call->done = on_purged;
    call->owner = request;
    request->state = call;
    request->drop = drop_purge;
    history_begin_call(request->context->history, call);
}

/* ---- one job ---- */

/* A search for the job of a call, in its state. */
struct find {
    struct history_call *call;
    struct request *request;
    int error;
    void (*missing)(struct request *request, int error);
};

static void drop_find(struct request *request)
{
    struct find *find = request->state;

    history_leave(find->call);
    free(find);
}

static void answer_found(struct request *request, struct history_call *call)
{
    (void)report_hit(request_begin(request), "job", list_first(&call->hits));
    request_end(request);
}

static void on_found(struct history_call *call)
{
    const struct find find = call->owner ? *(struct find *)call->owner : (struct find){0};

    if (find.request && call->error == 0 && call->n_hits == 0 && !call->complete) {
        history_begin_call(find.request->context->history, call);
        return;
    }
    if (find.request) {
        free(call->owner);
        find.request->state = NULL;
        find.request->drop = NULL;
        if (call->error == -ECANCELED) /* open calls are answered at the end */
            (void)0;
        else if (call->n_hits > 0)
            answer_found(find.request, call);
        else
            find.missing(find.request, find.error);
    }
    history_call_free(call);
}

bool control_find_past_job(struct request *request, const char *id, int error,
                           void (*missing)(struct request *request, int error))
{
    struct history *history = request->context->history;
    struct find *find;

    if (!history)
        return false;
    find = request_allocate(request, sizeof(*find));
    if (!find)
        return true;
    find->call = new_call(request);
    if (!find->call) {
        free(find);
        return true;
    }
    find->call->filter.id = strdup(id);
    if (!find->call->filter.id) {
        history_call_free(find->call);
        free(find);
        return false;
    }
    find->request = request;
    find->error = error;
    find->missing = missing;
    find->call->wanted = 1;
    find->call->owner = find;
    find->call->done = on_found;
    request->state = find;
    request->drop = drop_find;
    history_begin_call(history, find->call);
    return true;
}

const struct request_method control_history_methods[] = {
    {"History", search, .changes = false},
    {"PurgeHistory", purge, .changes = true},
    {0},
};
