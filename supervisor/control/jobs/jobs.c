/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs: creates, watches, shows and cancels jobs; attaches clients to rings. */

#include "supervisor/client/attachment.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/list-jobs.h"
#include "supervisor/control/jobs/submit.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/group/group.h"

#include <errno.h>
#include <stdlib.h>

/* ---- answers about one job ---- */

static void tell_job(struct request *request, const struct job *job)
{
    const struct access access = access_of(request);

    report_job(request_begin(request), "job", &access, job, REPORT_SINGLE_MAX);
    request_end_more(request);
}

static void answer_job(struct request *request, const struct job *job)
{
    const struct access access = access_of(request);

    report_job(request_begin(request), "job", &access, job, REPORT_SINGLE_MAX);
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

/* ---- Create and Do ---- */

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

/* ---- Get, Wait, Cancel ---- */

struct id_parameters {
    const char *id;
};

static const struct varlink_parameter id_table[] = {
    {"id", VARLINK_STRING, true, offsetof(struct id_parameters, id)},
    {0},
};

/* NULL = an error has been sent. */
static struct job *take_job(struct request *request, struct id_parameters *parameters)
{
    struct job *job = NULL;
    struct protocol_id id;

    if (!request_take(request, id_table, parameters))
        return NULL;
    if (protocol_id_parse(&id, parameters->id) == 0)
        job = job_by_id(request->context->jobs, &id);
    /* A job without a group has ended and exists only for clients that still receive its result. */
    if (job && job->group)
        return job;
    request_fail_string(request, "NoSuchJob", "id", parameters->id);
    return NULL;
}

static void drop_waiter(struct request *request)
{
    job_remove_waiter(request->state);
    free(request->state);
}

static void await_end(struct request *request, struct job *job, bool every_change)
{
    struct job_waiter *waiter = malloc(sizeof(*waiter));

    if (!waiter) {
        request_internal(request, -ENOMEM);
        return;
    }
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
    struct id_parameters parameters = {0};
    struct job *job = take_job(request, &parameters);

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
    struct id_parameters parameters = {0};
    struct job *job = take_job(request, &parameters);

    if (!job)
        return;
    if (job_ended(job) || request_is_oneway(request))
        answer_job(request, job);
    else
        await_end(request, job, false);
}

static void cancel(struct request *request)
{
    struct id_parameters parameters = {0};
    struct job *job = take_job(request, &parameters);
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
        reply_string(reply, "id", parameters.id);
        reply_string(reply, "state", job_state_to_string(job->state));
        request_end(request);
        break;
    case CELL_CANCEL_E_ALREADY:
        request_fail_string(request, "CancelAlreadyRequested", "id", parameters.id);
        break;
    default:
        request_done(request);
    }
}

/* ---- Attach ---- */

struct attach_parameters {
    struct varlink_int version;
};

/* Closes the connection of a client that broke the protocol of the rings. */
static void on_broken(void *userdata, const char *what)
{
    struct request *request = userdata;
    const struct peer *peer = &request->connection->peer;

    limited_log_write(request->log, NULL, LOG_LEVEL_WARNING,
                      "client %d (uid %u) broke the protocol: %s; it is cut off", (int)peer->pid,
                      (unsigned)peer->uid, what);
    connection_close(request->connection);
}

static bool may_read(void *userdata, const struct job *job)
{
    const struct access access = access_of(userdata);

    return access_job(&access, job);
}

static void fail_version(struct request *request, int64_t version)
{
    struct reply *reply = request_begin_error(request, "BadVersion");

    reply_int(reply, "version", version);
    reply_int(reply, "supported", MEMORY_VERSION);
    request_end(request);
}

static int send_descriptors(struct request *request, const struct endpoint_fds *fds)
{
    const int all[] = {fds->channel.inbox, fds->channel.outbox, fds->control, fds->channel.wait_fd,
                       fds->channel.wake_fd};
    unsigned n = fds->channel.wake_fd >= 0 ? 5 : 4;
    struct reply *reply;

    reply = request_begin(request);
    reply_uint(reply, "descriptors", n);
    reply_string(reply, "address", attachment_address(request->attachment));
    return request_end_with_fds(request, all, n);
}

static void attach(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"version", VARLINK_INT, true, offsetof(struct attach_parameters, version)},
        {0},
    };
    const struct attachment_options options = {.uid = request->connection->peer.uid,
                                               .spin_usec =
                                                   (uint32_t)request->context->config->spin,
                                               .blobs = request->connection->account->blobs,
                                               .may_read = may_read,
                                               .broken = on_broken,
                                               .userdata = request};
    struct attach_parameters parameters = {0};
    struct endpoint_fds fds;
    int r;

    if (!request_take(request, table, &parameters) || control_refuse_stopping(request))
        return;
    if (parameters.version.value != MEMORY_VERSION) {
        fail_version(request, parameters.version.value);
        return;
    }
    if (request->attachment) {
        request_fail(request, "AlreadyAttached");
        return;
    }
    if (request_is_oneway(request)) {
        request_done(request); /* there is no reply to carry the descriptors */
        return;
    }
    r = attachment_new(&request->attachment, &request->context->attachments, &options, &fds);
    if (r < 0) {
        request_internal(request, r);
        return;
    }
    r = send_descriptors(request, &fds);
    attachment_sent(request->attachment, &fds);
    if (r < 0)
        request->attachment = attachment_free(request->attachment);
    else
        request->connection->idle_max = USEC_INFINITY; /* from now on the client uses its rings */
}

const struct request_method control_jobs_methods[] = {
    {"Create", create, true}, {"Do", do_job, true},
    {"Get", get, false},      {"List", control_list_jobs, false},
    {"Cancel", cancel, true}, {"Wait", wait_job, false},
    {"Attach", attach, true}, {0},
};
