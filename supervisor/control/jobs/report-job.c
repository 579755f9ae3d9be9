/* SPDX-License-Identifier: MIT */

/* Writes a job into a reply. */

#include "supervisor/control/report.h"

#include "shared/base/utf8.h"
#include "shared/protocol/payload-wire.h"
#include "supervisor/control/control-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/job/queue.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/message-context.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/varlink/request.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int report_payload(struct reply *reply, const char *key, const struct payload *payload,
                   size_t limit)
{
    const struct reply_mark mark = reply_mark(reply);
    size_t size = (size_t)payload->size;
    const void *data = payload_data(payload);
    int r = 0;

    if (reply->size >= limit || payload->size > limit - reply->size)
        return -EMSGSIZE;
    if (!data && size > 0) {
        r = payload_blob_map(payload->fd, size, &data);
        if (r < 0)
            return r;
    }
    reply_payload(reply, key, data ? data : "", size);
    if (payload->fd >= 0 && size > 0)
        munmap((void *)(uintptr_t)data, size);
    if (reply->error == 0 && reply->size <= limit)
        return 0;
    reply_rewind(reply, mark);
    return -EMSGSIZE;
}

/* The kept death report of the worker that died with the job's last attempt; may be NULL. */
static const struct death *find_death(const struct control_context *context, const struct job *job)
{
    char id[PROTOCOL_ID_TEXT];

    if (job->n_attempts == 0)
        return NULL;
    job_format_id(job, id);
    list_for_each_entry (death, &context->deaths->deaths, struct death, link)
        if (death->attempt == job->attempt && strcmp(death->job, id) == 0)
            return death;
    return NULL;
}

/* Returns NULL, or what is missing. */
static const char *report_published(struct reply *reply, const struct control_context *context,
                                    const struct job *job, size_t limit)
{
    uint8_t page[MEMORY_STATE_MAX];
    const struct death *death;
    size_t size = 0;

    if (reply->size >= limit)
        return "published: the answer would be too large";
    if (job->slot) {
        if (slot_has_published(job->slot, job) &&
            slot_read_state(job->slot, page, &size) == -EAGAIN)
            return "published: the worker was writing its state page";
        if (size > 0)
            reply_payload(reply, "published", page, size);
        return NULL;
    }
    death = find_death(context, job);
    if (death && death->state_size > 0 && death->state_of_job)
        reply_payload(reply, "published", death->state, death->state_size);
    return NULL;
}

/* `detail` NULL: the client may not read it. `top` NULL = not known, or restricted. */
static void report_attempt(struct reply *reply, uint64_t number, const char *worker, usec_t at,
                           const char *cause, const char *detail, const char *top)
{
    reply_object(reply, NULL);
    reply_uint(reply, "number", number);
    reply_string(reply, "worker", worker);
    reply_uint(reply, "at", at);
    reply_string(reply, "cause", cause);
    reply_string_if(reply, "top", top);
    if (detail)
        reply_string(reply, "detail", detail);
    else
        reply_bool(reply, "restricted", true);
    reply_end_object(reply);
}

/* Restricts the detail of "retry", which is the worker's text. Only a reply about one job says
 * where its last worker was. */
static void report_attempts(struct reply *reply, const struct request *request,
                            const struct job *job, bool open, size_t limit)
{
    const struct death *death =
        open && limit == REPORT_SINGLE_MAX ? find_death(request->context, job) : NULL;

    reply_array(reply, "attempts");
    for (size_t i = 0; i < job->n_attempts && reply->size < limit; i++) {
        const struct job_attempt *attempt = &job->rare->attempts[i];
        const bool readable = open || strcmp(attempt->cause, "retry") != 0;

        report_attempt(reply, attempt->number, attempt->worker, attempt->at, attempt->cause,
                       readable ? attempt->detail : NULL,
                       death && attempt->number == death->attempt ? report_top(request, death)
                                                                  : NULL);
    }
    reply_end_array(reply);
}

static void report_times(struct reply *reply, const struct job *job)
{
    reply_uint(reply, "created_at", job->created_at);
    reply_uint_if(reply, "started_at", job->started_at);
    reply_uint_if(reply, "ended_at", job->ended_at);
    if (job->state == JOB_BACKOFF || job->state == JOB_DELAYED)
        reply_uint(reply, "next_attempt_at", alarm_realtime(&job->pause->alarm));
}

/* Writes the result, which exists only if a worker ended the job, or why it is missing. */
static void report_result(struct reply *reply, const struct job *job, size_t limit, char *missing,
                          size_t size)
{
    int r = 0;

    if (job->state == JOB_SUCCEEDED || job->state == JOB_REJECTED)
        r = report_payload(reply, "result", &job->result, limit);
    if (r == -EMSGSIZE)
        snprintf(
            missing, size,
            "result: its %llu bytes are too many for this answer; 'troupectl wait' writes them",
            (unsigned long long)job->result.size);
    else if (r < 0)
        snprintf(missing, size, "result: %s", strerror(-r));
}

/* Reports the beginning of the payload, which shows what the job is about. */
static void report_excerpt(struct reply *reply, const struct payload *payload)
{
    char start[REPORT_EXCERPT_MAX];
    const void *data = payload_data(payload);
    size_t size = payload->size < sizeof(start) ? (size_t)payload->size : sizeof(start);

    if (size == 0)
        return;
    if (!data) {
        if (pread(payload->fd, start, size, 0) != (ssize_t)size)
            return;
        data = start;
    }
    if (size < payload->size)
        size = utf8_whole(data, size);
    reply_payload(reply, "payload_start", data, size);
    reply_uint(reply, "payload_bytes", payload->size);
}

/* Reason, published state, result, and which of these could not be shown. */
static void report_contents(struct reply *reply, const struct control_context *context,
                            const struct job *job, size_t limit)
{
    char missing[256] = "";
    const char *published;
    size_t used;

    reply_string_if(reply, "reason", job->reason);
    if (limit == REPORT_SINGLE_MAX && !job_ended(job))
        report_excerpt(reply, &job->payload);
    published = report_published(reply, context, job, limit);
    report_result(reply, job, limit, missing, sizeof(missing));
    used = strlen(missing);
    if (published)
        snprintf(missing + used, sizeof(missing) - used, "%s%s", used > 0 ? "; " : "", published);
    reply_string_if(reply, "missing", missing);
}

static void report_dead_letter_number(struct reply *reply, const struct request *request,
                                      const char *id)
{
    const struct dead_letter *letter =
        dead_letter_of_job(&request->context->messages->dead_letters, id);

    if (letter)
        reply_uint(reply, "dead_letter", letter->id);
}

static void report_parents(struct reply *reply, const struct tie_list *list)
{
    reply_array(reply, "after");
    for (const struct tie *tie = list->parents; tie < list->parents + list->n; tie++) {
        reply_object(reply, NULL);
        reply_string(reply, "id", tie->id);
        reply_string(reply, "condition", tie_condition_to_string(tie->condition));
        if (tie->end != 0 || tie->job)
            reply_string(reply, "state",
                         job_state_to_string(tie->end != 0 ? tie->end : tie->job->state));
        reply_end_object(reply);
    }
    reply_end_array(reply);
}

static void report_tally(struct reply *reply, const struct batch_tally *tally)
{
    reply_object(reply, "members");
    reply_bool(reply, "open", tally->open);
    reply_uint(reply, "live", tally->live);
    reply_uint(reply, "succeeded", tally->succeeded);
    reply_uint(reply, "failed", tally->failed);
    reply_end_object(reply);
}

/* Reports to which other jobs the job is tied. */
static void report_ties(struct reply *reply, const struct job_ties *ties)
{
    struct tie_list list;

    ties_list(ties, &list);
    if (list.n > 0)
        report_parents(reply, &list);
    reply_uint_if(reply, "waits_for", ties->n_undecided);
    reply_string_if(reply, "batch", list.batch.id);
    if (!ties->fate)
        return;
    if (ties->fate->is_batch)
        report_tally(reply, &ties->fate->tally);
    reply_uint_if(reply, "children", ties->fate->n_children);
}

/* Returns the name of the worker that has the job, or whose attempt failed last if no other attempt
 * followed; NULL if there is none. */
static const char *last_worker(const struct job *job)
{
    const struct job_attempt *attempt;

    if (job->slot)
        return job->slot->name;
    if (job->n_attempts == 0)
        return NULL;
    attempt = &job->rare->attempts[job->n_attempts - 1];
    return attempt->number == job->attempt ? attempt->worker : NULL;
}

void report_job_as(struct reply *reply, const char *key, const struct request *request,
                   const struct job *job, size_t limit, const struct report_view *view)
{
    const bool open = view->open;
    char id[PROTOCOL_ID_TEXT];

    reply_object(reply, key);
    reply_string(reply, "id", job_format_id(job, id));
    reply_string(reply, "group", view->group);
    if (job->key_size > 0)
        reply_text(reply, "key", job->key, job->key_size);
    reply_string(reply, "state", job_state_to_string(job->state));
    reply_uint(reply, "attempt", job->attempt);
    reply_uint(reply, "failed_attempts", job->n_failed);
    reply_uint(reply, "max_attempts", (uint64_t)job->max_retries + 1);
    reply_uint(reply, "priority", job->priority);
    reply_uint_if(reply, "cost", job->cost);
    if (open && job->rare)
        reply_string_if(reply, "tags", job->rare->tags);
    reply_string_if(reply, "traceparent", job_traceparent(job));
    report_times(reply, job);
    reply_string_if(reply, "worker", last_worker(job));
    reply_bool(reply, "cancel_requested", job_cancel_requested(job));
    if (job->cause != PROTOCOL_CAUSE_NONE && job_ended(job))
        reply_string(reply, "cause", protocol_cause_name(job->cause));
    if (job->state == JOB_DEAD)
        report_dead_letter_number(reply, request, id);
    if (job->moved)
        reply_bool(reply, "moved", true);
    if (job_own_ties(job) && reply->size < limit)
        report_ties(reply, job_own_ties(job));
    report_attempts(reply, request, job, open, limit);
    if (job->state == JOB_SUCCEEDED || job->state == JOB_REJECTED)
        reply_int(reply, "code", job->code);
    if (open)
        report_contents(reply, request->context, job, limit);
    else
        reply_bool(reply, "restricted", true);
    reply_end_object(reply);
}

void report_job(struct reply *reply, const char *key, const struct request *request,
                const struct job *job, size_t limit)
{
    report_job_as(reply, key, request, job, limit,
                  &(struct report_view){.group = job->group ? job->group->name : "",
                                        .open = access_job(request, job)});
}

/* Reports the attempts in which a worker died: the dead letter knows no others. */
static void report_letter_attempts(struct reply *reply, const struct request *request,
                                   const struct dead_letter *letter)
{

    reply_array(reply, "attempts");
    for (size_t i = 0; i < letter->n_deaths; i++) {
        const struct death *death = letter->deaths[i];

        report_attempt(reply, death->attempt, death->worker, death->at,
                       death_cause_to_string(death->cause), death->detail,
                       report_top(request, death));
    }
    reply_end_array(reply);
}

void report_dead_job(struct reply *reply, const struct request *request,
                     const struct dead_letter *letter)
{
    const struct group *group = registry_group_of(request->context->registry, letter->recipient);
    const struct job_options *asked = &letter->options;
    uint64_t max_attempts = letter->attempts; /* they are used up */

    if (asked->max_retries != PROTOCOL_DEFAULT_RETRIES)
        max_attempts = (uint64_t)asked->max_retries + 1;
    else if (group)
        max_attempts = (uint64_t)group->config->max_retries + 1;
    reply_object(reply, "job");
    reply_string(reply, "id", letter->job);
    reply_string(reply, "group", group ? group->name : letter->recipient);
    if (letter->topic.key_size > 0)
        reply_text(reply, "key", letter->topic.key, letter->topic.key_size);
    reply_string(reply, "state", job_state_to_string(JOB_DEAD));
    reply_uint(reply, "attempt", letter->attempts);
    reply_uint(reply, "failed_attempts", letter->attempts);
    reply_uint(reply, "max_attempts", max_attempts);
    reply_uint(reply, "priority",
               asked->priority != PROTOCOL_DEFAULT_PRIORITY ? asked->priority
                                                            : QUEUE_PRIORITY_DEFAULT);
    reply_uint_if(reply, "cost", asked->cost);
    reply_string_if(reply, "traceparent", letter->traceparent);
    reply_uint(reply, "created_at", letter->sent_at);
    reply_uint(reply, "ended_at", letter->at);
    if (letter->n_deaths > 0)
        reply_string(reply, "worker", letter->deaths[letter->n_deaths - 1]->worker);
    reply_bool(reply, "cancel_requested", false);
    reply_string(reply, "cause", protocol_cause_name(PROTOCOL_CAUSE_ATTEMPTS));
    reply_uint(reply, "dead_letter", letter->id);
    report_letter_attempts(reply, request, letter);
    if (access_letter(request, letter)) {
        reply_string_if(reply, "tags", letter->tags);
        reply_string_if(reply, "reason", letter->text);
        report_excerpt(reply, &letter->payload);
    } else {
        reply_bool(reply, "restricted", true);
    }
    reply_end_object(reply);
}
