/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs: Stream, what a job emits. */

#include "supervisor/control/access.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/jobs.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-stream.h"
#include "supervisor/job/job-waiter.h"
#include <errno.h>

/* With "more": further items are written when the client has less than this unread. */
#define UNREAD_MAX ((size_t)256 << 10)

/* A client that watches a job until its end. */
struct watch {
    struct request *request;
    struct job_waiter *waiter;
    struct job_reader reader;
    struct task task; /* writes what is new */
    usec_t after;     /* the last item that was written */
    bool begun;       /* the first reply was sent, which may have no items */
};

/* Writes the items after `*after`, and moves that to the last one. */
static void write_items(struct reply *reply, const struct job *job, usec_t *after)
{
    const struct job_item *item = job_stream_after(job, *after);

    reply_array(reply, "items");
    for (; item; item = job_stream_next(job, item)) {
        reply_object(reply, NULL);
        reply_uint(reply, "at", item->at);
        reply_payload(reply, "data", item->bytes, item->size);
        reply_end_object(reply);
        *after = item->at;
    }
    reply_end_array(reply);
    if (job_own_stream(job))
        reply_uint_if(reply, "dropped", job_own_stream(job)->dropped);
}

static void write_last(struct reply *reply, const struct job_end *end)
{
    usec_t after = end->after;

    write_items(reply, end->job, &after);
}

static void on_change(struct job_waiter *waiter, struct job *job)
{
    struct watch *watch = waiter->owner;

    if (job->refusal != 0)
        control_refuse_job(watch->request, job);
    else if (job_ended(job))
        control_tell_end(watch->request, job, watch->after, write_last);
}

static void on_turn(struct task *task)
{
    struct watch *watch = list_entry(task, struct watch, task);
    const struct job *job = watch->waiter->job;
    struct request *request = watch->request;

    if (connection_unread(request->connection) > UNREAD_MAX ||
        (watch->begun && !job_stream_after(job, watch->after)))
        return;
    watch->begun = true;
    write_items(request_begin(request), job, &watch->after);
    request_end_more(request);
}

static void on_news(struct job_reader *reader)
{
    task_queue(&list_entry(reader, struct watch, reader)->task);
}

static void on_sent(struct request *request)
{
    task_queue(&((struct watch *)request->state)->task);
}

static void drop_watch(struct request *request)
{
    struct watch *watch = request->state;

    task_cancel(&watch->task);
    list_unlink(&watch->reader.link);
    job_waiter_free(request->context->jobs, watch->waiter);
    free(watch);
}

static void begin_watch(struct request *request, struct job *job, usec_t after)
{
    struct job_stream *stream = job_stream_of(job, &job->group->streams);
    struct job_waiter *waiter = stream ? job_waiter_new(request->context->jobs, job) : NULL;
    struct watch *watch = waiter ? request_allocate(request, sizeof(*watch)) : NULL;

    if (!watch) {
        if (waiter) /* then an error has been sent */
            job_waiter_free(request->context->jobs, waiter);
        else
            request_internal(request, -ENOMEM);
        return;
    }
    *watch = (struct watch){.request = request, .waiter = waiter, .after = after};
    waiter->changed = on_change;
    waiter->owner = watch;
    watch->reader.news = on_news;
    list_init(&watch->reader.link);
    list_push_back(&stream->readers, &watch->reader.link);
    task_init(&watch->task, request->connection->work, on_turn);
    request->state = watch;
    request->drop = drop_watch;
    request->sent = on_sent;
    task_queue(&watch->task);
}

/* Nothing is left of what the job has emitted. */
static struct reply *begin_empty(struct request *request)
{
    struct reply *reply = request_begin(request);

    reply_array(reply, "items");
    reply_end_array(reply);
    return reply;
}

static void answer_dead(struct request *request, const struct dead_letter *letter)
{
    report_dead_job(begin_empty(request), request, letter);
    request_end(request);
}

static void answer_past(struct request *request, const struct history_row *row)
{
    report_past_job(begin_empty(request), "job", row);
    request_end(request);
}

static void answer_ended(struct request *request, int error)
{
    control_find_ended(request, error, answer_dead, answer_past);
}

static void answer(struct request *request, const struct job *job, usec_t after)
{
    struct reply *reply = request_begin(request);

    write_items(reply, job, &after);
    report_job(reply, "job", request, job, REPORT_SINGLE_MAX);
    request_end(request);
}

static void stream(struct request *request)
{
    const usec_t after = (usec_t)request_int(request, "after", 0);
    struct job *job = control_find_job(request, request_string(request, "id"), answer_ended);

    if (!job)
        return;
    if (!access_job(request, job) &&
        !access_demand(request, job->group, "what a job emits is for its submitter and readers"))
        return;
    if (job_ended(job) || !request_wants_more(request))
        answer(request, job, after);
    else
        begin_watch(request, job, after);
}

const struct request_method control_stream_methods[] = {
    {"Stream", stream, .changes = false},
    {0},
};
