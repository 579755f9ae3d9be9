/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs: creates, watches, shows and cancels jobs. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/submit.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group.h"
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

/* waiter->cookie: whether the client also gets the changes before the last one. */
static void on_change(struct job_waiter *waiter, struct job *job)
{
    struct request *request = waiter->owner;

    if (job_ended(job))
        answer_job(request, job);
    else if (waiter->cookie != 0)
        tell_job(request, job);
}

static void create(struct request *request)
{
    const struct control_submit_options options = {.keep_result = true};
    struct job *job = control_submit(request, &options);
    char id[PROTOCOL_ID_TEXT];

    if (!job)
        return;
    reply_string(request_begin(request), "id", protocol_id_format(&job->id, id));
    request_end(request);
}

/* The job goes on without the client. */
static void drop_submitter(struct request *request)
{
    job_remove_waiter(request->state);
}

static void do_job(struct request *request)
{
    /* A oneway call does not wait for the job, as that would delay the client's next call. */
    const struct control_submit_options options = {
        .changed = request_is_oneway(request) ? NULL : on_change,
        .owner = request,
    };
    struct job *job = control_submit(request, &options);

    if (!job)
        return;
    if (request_is_oneway(request)) {
        request_done(request);
        return;
    }
    request->state = &job->submitter;
    request->drop = drop_submitter;
    job->submitter.cookie = request_wants_more(request);
    if (job->submitter.cookie != 0)
        tell_job(request, job);
}

struct id_parameters {
    const char *id;
};

/* NULL = an error has been sent. */
static struct job *find_job(struct request *request)
{
    const struct id_parameters *given = request->parameters;
    struct job *job = NULL;
    struct protocol_id id;

    if (protocol_id_parse(&id, given->id) == 0)
        job = job_by_id(request->context->jobs, &id);
    /* A job without a group has ended and exists only for clients that still receive its result. */
    if (job && job->group)
        return job;
    request_fail_string(request, "NoSuchJob", "id", given->id);
    return NULL;
}

static void drop_waiter(struct request *request)
{
    job_remove_waiter(request->state);
    free(request->state);
}

static void await_end(struct request *request, struct job *job, bool every_change)
{
    struct job_waiter *waiter = request_allocate(request, sizeof(*waiter));

    if (!waiter)
        return;
    *waiter =
        (struct job_waiter){.changed = on_change, .owner = request, .cookie = every_change ? 1 : 0};
    list_init(&waiter->link);
    list_init(&waiter->owner_link);
    request->state = waiter;
    request->drop = drop_waiter;
    job_add_waiter(job, waiter);
}

static void get(struct request *request)
{
    struct job *job = find_job(request);

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
    struct job *job = find_job(request);

    if (!job)
        return;
    if (job_ended(job) || request_is_oneway(request))
        answer_job(request, job);
    else
        await_end(request, job, false);
}

static void cancel(struct request *request)
{
    const struct id_parameters *given = request->parameters;
    struct job *job = find_job(request);
    struct reply *reply;

    if (!job)
        return;
    if (!job->cancel_requested) {
        job->canceller_known = true;
        job->canceller = request->connection->peer.uid;
    }
    switch (cell_cancel(job)) {
    case CELL_CANCEL_E_ENDED:
        reply = request_begin_error(request, "AlreadyEnded");
        reply_string(reply, "id", given->id);
        reply_string(reply, "state", job_state_to_string(job->state));
        request_end(request);
        break;
    case CELL_CANCEL_E_ALREADY:
        request_fail_string(request, "CancelAlreadyRequested", "id", given->id);
        break;
    default:
        request_done(request);
    }
}

static const struct varlink_parameter id_table[] = {
    VARLINK_ROW("id", STRING, id_parameters, id, .required = true),
    {0},
};

const struct request_method control_job_methods[] = {
    {"Create", create, control_submit_table, .changes = true},
    {"Do", do_job, control_submit_table, .changes = true},
    {"Get", get, id_table, .changes = false},
    {"Cancel", cancel, id_table, .changes = true},
    {"Wait", wait_job, id_table, .changes = false},
    {0},
};
