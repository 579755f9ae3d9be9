/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs: creates, watches, shows and cancels jobs. */

#include "supervisor/control/jobs/jobs.h"
#include "shared/base/fault.h"
#include "supervisor/control/access.h"
#include "supervisor/control/actors/actors.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/group/cell/cell-ties.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/group/registry.h"
#include "supervisor/history/history.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/message-context.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <stdlib.h>

static void tell_job(struct request *request, const struct job *job)
{
    report_job(request_begin(request), "job", request, job, REPORT_SINGLE_MAX);
    request_end_more(request);
}

static void answer_job(struct request *request, const struct job *job)
{
    report_job(request_begin(request), "job", request, job, REPORT_SINGLE_MAX);
    request_end(request);
}

/* ---- ends ---- */

static void answer_end(struct request *request, void *what)
{
    const struct job_end *end = what;
    const struct group *group = registry_get(request->context->registry, end->group);
    struct reply *reply = request_begin(request);

    if (end->write)
        end->write(reply, end);
    report_job_as(reply, "job", request, end->job, REPORT_SINGLE_MAX,
                  &(struct report_view){.group = group ? group->name : "", .open = end->open});
    request_end(request);
}

static void drop_end(struct request *request)
{
    struct job_end *end = request->state;

    job_unref(request->context->jobs, end->job);
    free(end);
}

/* Keeps the end until the request has its turn. Without memory, answers immediately. */
static void keep_end(struct request *request, const struct job_end *end)
{
    struct job_end *kept = malloc(sizeof(*kept));

    if (!kept) {
        request_answer_now(request);
        return;
    }
    *kept = *end;
    (void)job_ref(kept->job);
    request->drop(request); /* of what has waited */
    request->sent = NULL;
    request->what = request->state = kept;
    request->drop = drop_end;
}

void control_tell_end(struct request *request, struct job *job, usec_t after,
                      void (*write)(struct reply *reply, const struct job_end *end))
{
    struct job_end end = {
        .job = job,
        .group = job->group ? job->group->reference : 0,
        .open = access_job(request, job),
        .after = after,
        .write = write,
    };

    if (!request_answer_in_turn(request, answer_end, &end))
        keep_end(request, &end);
}

/* ---- calls ---- */

/* waiter->cookie: whether the client also gets the changes before the last one. */
static void on_change(struct job_waiter *waiter, struct job *job)
{
    struct request *request = waiter->owner;

    if (job->refusal != 0)
        control_refuse_job(request, job);
    else if (job_ended(job))
        control_tell_end(request, job, 0, NULL);
    else if (waiter->cookie != 0)
        tell_job(request, job);
}

/* The job continues without the client. */
static void drop_waiter(struct request *request)
{
    job_waiter_free(request->context->jobs, request->state);
}

static void hold(struct request *request, struct job_waiter *waiter)
{
    request->state = waiter;
    request->drop = drop_waiter;
}

static void answer_accepted(struct request *request, const struct job *job, bool existing)
{
    struct reply *reply = request_begin(request);
    char id[PROTOCOL_ID_TEXT];

    FAULT_POINT("control.accepted");
    reply_string(reply, "id", job_format_id(job, id));
    if (existing)
        reply_bool(reply, "existing", true);
    request_end(request);
    FAULT_POINT("control.accepted-told");
}

static void on_accepted(struct job_waiter *waiter, struct job *job)
{
    if (job->refusal != 0)
        control_refuse_job(waiter->owner, job);
    else
        answer_accepted(waiter->owner, job, false);
}

static void create_as(struct request *request, bool opens_batch)
{
    const struct control_submit_options options = {
        .keep_result = true,
        .opens_batch = opens_batch,
        .changed = on_accepted,
        .owner = request,
    };
    bool existing;
    struct job *job = control_submit(request, &options, &existing);

    if (!job)
        return;
    if (existing || !job->record) {
        answer_accepted(request, job, existing);
        return;
    }
    hold(request, job_first_waiter(job));
    durable_job_await(job, request->state);
}

static void create(struct request *request)
{
    create_as(request, false);
}

static void open_batch(struct request *request)
{
    create_as(request, true);
}

/* Sends NoSuchJob, or why the job may exist: `error` as of control_find_job(). */
static void refuse_missing(struct request *request, int error)
{
    if (error == 0 || error == CELL_E_MISSING)
        request_fail_string(request, "NoSuchJob", "id", request_string(request, "id"));
    else if (error < 0)
        request_internal(request, error);
    else if (error != CELL_E_STORE_FAILED)
        request_fail(request, refusal_of(error)->varlink);
    else
        request_fail_string(request, refusal_of(error)->varlink, "problem",
                            job_lookup_problem(request->context->groups));
}

static const struct dead_letter *find_letter(const struct request *request)
{
    char id[PROTOCOL_ID_TEXT];
    struct protocol_id parsed;

    return protocol_id_parse(&parsed, request_string(request, "id")) == 0
               ? dead_letter_of_job(&request->context->messages->dead_letters,
                                    protocol_id_format(&parsed, id))
               : NULL;
}

static void answer_dead(struct request *request, const struct dead_letter *letter)
{
    report_dead_job(request_begin(request), request, letter);
    request_end(request);
}

void control_find_ended(struct request *request, int error,
                        void (*dead)(struct request *request, const struct dead_letter *letter),
                        void (*past)(struct request *request, const struct history_row *row))
{
    const struct dead_letter *letter = find_letter(request);

    if (letter)
        dead(request, letter);
    else if (!control_await_letters(request) &&
             !control_find_past_job(request, error, past, refuse_missing))
        refuse_missing(request, error);
}

static void answer_past(struct request *request, const struct history_row *row)
{
    report_past_job(request_begin(request), "job", row);
    request_end(request);
}

static void get_ended(struct request *request, int error)
{
    control_find_ended(request, error, answer_dead, answer_past);
}

/* Calls `missing` if there is no such job. Returns NULL if the call has been answered, or will be
 * executed again. */
static struct job *find_job(struct request *request, void (*missing)(struct request *, int))
{
    return control_find_job(request, request_string(request, "id"), missing);
}

static void await_end(struct request *request, struct job *job, bool every_change)
{
    struct job_waiter *waiter = job_waiter_new(request->context->jobs, job);

    if (!waiter) {
        request_internal(request, -ENOMEM);
        return;
    }
    waiter->changed = on_change;
    waiter->owner = request;
    waiter->cookie = every_change;
    hold(request, waiter);
}

/* The end of a job carries its result, so it must be readable for the caller. */
static void do_existing(struct request *request, struct job *job)
{
    if (!access_job(request, job)) {
        control_refuse_taken(request, job);
        return;
    }
    if (request_wants_more(request))
        tell_job(request, job);
    await_end(request, job, request_wants_more(request));
}

static void do_job(struct request *request)
{
    const struct control_submit_options options = {.changed = on_change, .owner = request};
    bool existing;
    struct job *job = control_submit(request, &options, &existing);
    struct job_waiter *submitter;

    if (!job)
        return;
    if (existing) {
        do_existing(request, job);
        return;
    }
    submitter = job_first_waiter(job);
    submitter->cookie = request_wants_more(request);
    hold(request, submitter);
    if (submitter->cookie != 0)
        tell_job(request, job);
}

static void get(struct request *request)
{
    struct job *job = find_job(request, get_ended);

    if (!job)
        return;
    if (job_ended(job) || !request_wants_more(request)) {
        answer_job(request, job);
        return;
    }
    tell_job(request, job);
    await_end(request, job, true);
}

static void wait_job(struct request *request)
{
    struct job *job = find_job(request, get_ended);

    if (!job)
        return;
    if (job_ended(job))
        answer_job(request, job);
    else
        await_end(request, job, false);
}

/* A job that has ended waits for nothing. */
static void explain_state(struct request *request, enum job_state state)
{
    struct reply *reply = request_begin(request);

    reply_string(reply, "state", job_state_to_string(state));
    reply_array(reply, "waits");
    reply_end_array(reply);
    request_end(request);
}

static void explain_dead(struct request *request, const struct dead_letter *letter)
{
    explain_state(request, JOB_DEAD);
}

static void explain_past(struct request *request, const struct history_row *row)
{
    explain_state(request, (enum job_state)row->state);
}

static void explain_ended(struct request *request, int error)
{
    control_find_ended(request, error, explain_dead, explain_past);
}

static void explain(struct request *request)
{
    const struct job *job = find_job(request, explain_ended);
    struct reply *reply;

    if (!job)
        return;
    reply = request_begin(request);
    reply_string(reply, "state", job_state_to_string(job->state));
    waits_of_job(reply, job);
    request_end(request);
}

void control_refuse_ended(struct request *request, enum job_state state)
{
    request_fail_strings(request, "AlreadyEnded", "id", request_string(request, "id"), "state",
                         job_state_to_string(state));
}

static void refuse_dead(struct request *request, const struct dead_letter *letter)
{
    control_refuse_ended(request, JOB_DEAD);
}

static void refuse_past(struct request *request, const struct history_row *row)
{
    control_refuse_ended(request, (enum job_state)row->state);
}

void control_refuse_unknown(struct request *request, int error)
{
    control_find_ended(request, error, refuse_dead, refuse_past);
}

static void refuse_second_cancel(struct request *request)
{
    request_fail_string(request, "CancelAlreadyRequested", "id", request_string(request, "id"));
}

/* waiter->cookie: whether the cancellation was requested before. */
static void on_cancelled(struct job_waiter *waiter, struct job *job)
{
    if (job->refusal != 0)
        control_refuse_job(waiter->owner, job);
    else if (job_ended(job) && job->state != JOB_CANCELLED)
        control_refuse_ended(waiter->owner, job->state);
    else if (waiter->cookie != 0)
        refuse_second_cancel(waiter->owner);
    else
        request_done(waiter->owner);
}

/* Answers when the cancellation is on disk. */
static void await_cancel(struct request *request, struct job *job, bool again)
{
    struct job_waiter *waiter = job_waiter_new(request->context->jobs, job);

    if (!waiter) {
        request_done(request);
        return;
    }
    waiter->changed = on_cancelled;
    waiter->owner = request;
    waiter->cookie = again;
    hold(request, waiter);
    durable_job_await(job, waiter);
}

static void cancel(struct request *request)
{
    struct job *job;

    if (!access_submits_somewhere(request)) {
        access_refuse_submit(request, NULL);
        return;
    }
    job = find_job(request, control_refuse_unknown);
    if (!job)
        return;
    if (!access_cancel(request, job)) {
        access_refuse_submit(request, job->group);
        return;
    }
    switch (cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, request->connection->peer.uid)) {
    case CELL_CANCEL_E_ENDED:
        control_refuse_ended(request, job->state);
        break;
    case CELL_CANCEL_E_ALREADY:
        refuse_second_cancel(request);
        break;
    case CELL_CANCEL_E_ALREADY_WAIT:
        await_cancel(request, job, true);
        break;
    case CELL_CANCEL_E_WAIT:
        await_cancel(request, job, false);
        break;
    default:
        request_done(request);
    }
}

static void refuse_no_batch(struct request *request, const struct dead_letter *letter)
{
    request_fail_string(request, "NotABatch", "id", request_string(request, "id"));
}

static void close_ended(struct request *request, int error)
{
    control_find_ended(request, error, refuse_no_batch, refuse_past);
}

static void on_closed(struct job_waiter *waiter, struct job *job)
{
    if (job->refusal != 0)
        control_refuse_job(waiter->owner, job);
    else
        request_done(waiter->owner);
}

/* Replies when the change is on disk. */
static void close_batch(struct request *request)
{
    const bool submits = access_submits_somewhere(request);
    struct job *job = submits ? find_job(request, close_ended) : NULL;
    struct job_waiter *waiter;

    if (!submits)
        access_refuse_submit(request, NULL);
    if (!job)
        return;
    if (!access_cancel(request, job)) {
        access_refuse_submit(request, job->group);
    } else if (!job_is_batch(job)) {
        request_fail_string(request, "NotABatch", "id", request_string(request, "id"));
    } else if (job_ended(job) || cell_close_batch(job) == 0) {
        request_done(request);
    } else if (!(waiter = job_waiter_new(request->context->jobs, job))) {
        request_internal(request, -ENOMEM);
    } else {
        waiter->changed = on_closed;
        waiter->owner = request;
        hold(request, waiter);
        durable_job_await(job, waiter);
    }
}

const struct request_method control_job_methods[] = {
    {"Create", create, .changes = true, .submits = true},
    {"OpenBatch", open_batch, .changes = true, .submits = true},
    {"CloseBatch", close_batch, .changes = true, .submits = true},
    {"Do", do_job, .changes = true, .submits = true},
    {"Get", get, .changes = false},
    {"Cancel", cancel, .changes = true, .submits = true},
    {"Wait", wait_job, .changes = false},
    {"Explain", explain, .changes = false},
    {0},
};
