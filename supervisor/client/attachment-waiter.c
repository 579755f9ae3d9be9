/* SPDX-License-Identifier: MIT */

/* Waits for the ends of jobs on behalf of an attached client, and sends it DONE records. */

#include "supervisor/client/attachment-private.h"

#include "supervisor/channel/answer.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Upper bound of a DONE record's other fields, without reason and payload. */
#define DONE_RECORD_FIXED 256u

static const char RESULT_LOST[] =
    "its result could not be handed over: out of memory or descriptors";

static enum protocol_end end_of(const struct job *job)
{
    switch (job->state) {
    case JOB_SUCCEEDED:
        return PROTOCOL_END_SUCCEEDED;
    case JOB_REJECTED:
        return PROTOCOL_END_REJECTED;
    case JOB_CANCELLED:
        return job->timed_out ? PROTOCOL_END_TIMED_OUT : PROTOCOL_END_CANCELLED;
    default:
        return PROTOCOL_END_DEAD;
    }
}

/* 0, ENDPOINT_E_FULL, or -errno. */
static int attachment_send_done(struct attachment *attachment, uint64_t cookie,
                                const struct job *job)
{
    struct protocol_done done = {
        .cookie = cookie,
        .id = job->id,
        .end = end_of(job),
        .code = job->code,
        .attempts = job->attempt,
        .reason = job->reason,
        .reason_size = job->reason ? (uint32_t)strlen(job->reason) : 0,
    };
    uint32_t room = DONE_RECORD_FIXED + done.reason_size + (uint32_t)sizeof(RESULT_LOST);
    void *body;
    int r;

    if (job->result.fd < 0 && job->result.size <= ATTACHMENT_INLINE)
        room += (uint32_t)job->result.size;
    r = endpoint_reserve(&attachment->endpoint, room, &body);
    if (r != 0)
        return r;
    r = endpoint_give(&attachment->endpoint, &job->result, &done.payload);
    if (r == ENDPOINT_E_FULL)
        return r;
    if (r < 0) {
        /* No descriptor or memory for a large result: sends the end without it. */
        done.payload = (struct payload_wire){.form = PAYLOAD_INLINE};
        done.reason = RESULT_LOST;
        done.reason_size = sizeof(RESULT_LOST) - 1;
    }
    r = protocol_put_done(body, room, &done);
    if (r < 0)
        return r;
    /* A dead job goes out in this turn; others wait briefly for the client's further jobs. */
    endpoint_commit_of_many(&attachment->endpoint, PROTOCOL_DONE, (uint32_t)r,
                            job->state == JOB_DEAD ? 0 : attachment->n_waiters);
    return 0;
}

void attachment_wait(struct attachment *attachment, struct job_waiter *waiter)
{
    list_push_back(&attachment->waiting, &waiter->owner_link);
    attachment->n_waiters++;
}

static void waiter_release(struct job_waiter *waiter, struct job *job)
{
    ((struct attachment *)waiter->owner)->n_waiters--;
    list_unlink(&waiter->owner_link);
    if (waiter != &job->submitter)
        free(waiter);
}

void attachment_on_change(struct job_waiter *waiter, struct job *job)
{
    struct attachment *attachment = waiter->owner;
    int r;

    if (!job_ended(job))
        return;
    r = list_empty(&attachment->owed) ? attachment_send_done(attachment, waiter->cookie, job)
                                      : ENDPOINT_E_FULL;
    if (r != ENDPOINT_E_FULL) {
        /* Any other error means a broken endpoint, whose client is being removed. */
        waiter_release(waiter, job);
        return;
    }
    list_unlink(&waiter->owner_link);
    list_push_back(&attachment->owed, &waiter->owner_link);
    (void)job_ref(job);
}

int attachment_send_owed(struct attachment *attachment)
{
    struct list *node;

    while ((node = list_first(&attachment->owed))) {
        struct job_waiter *waiter = list_entry(node, struct job_waiter, owner_link);
        struct job *job = waiter->job;
        int r = attachment_send_done(attachment, waiter->cookie, job);
        if (r == ENDPOINT_E_FULL)
            return r;
        waiter_release(waiter, job);
        job_unref(attachment->context->jobs, job);
    }
    return 0;
}

int attachment_on_watch(struct attachment *attachment, const struct ring_record *record)
{
    struct protocol_by_id watch;
    struct job_waiter *waiter;
    struct job *job;
    int r = protocol_get_by_id(record->body, record->size, &watch);

    if (r < 0)
        return r;
    job = job_by_id(attachment->context->jobs, &watch.id);
    if (!job)
        return answer_refuse(&attachment->endpoint, watch.cookie, ESRCH, "no such job");
    /* The end of a job carries its result. */
    if (!attachment->may_read(attachment->userdata, job))
        return answer_refuse(&attachment->endpoint, watch.cookie, EPERM, "not permitted");
    if (job_ended(job))
        return attachment_send_done(attachment, watch.cookie, job);
    if (attachment->n_waiters >= ATTACHMENT_WAITERS_MAX)
        return answer_refuse(&attachment->endpoint, watch.cookie, EBUSY,
                             "too many jobs are waited for");
    waiter = malloc(sizeof(*waiter));
    if (!waiter)
        return answer_refuse(&attachment->endpoint, watch.cookie, ENOMEM, "out of memory");
    *waiter = (struct job_waiter){
        .changed = attachment_on_change, .owner = attachment, .cookie = watch.cookie};
    list_init(&waiter->link);
    attachment_wait(attachment, waiter);
    job_add_waiter(job, waiter);
    return 0;
}

void attachment_drop_waiters(struct attachment *attachment)
{
    struct list *node;

    while ((node = list_first(&attachment->waiting))) {
        struct job_waiter *waiter = list_entry(node, struct job_waiter, owner_link);
        struct job *job = waiter->job;
        job_remove_waiter(waiter);
        waiter_release(waiter, job);
    }
    while ((node = list_first(&attachment->owed))) {
        struct job_waiter *waiter = list_entry(node, struct job_waiter, owner_link);
        struct job *job = waiter->job;
        waiter_release(waiter, job);
        job_unref(attachment->context->jobs, job);
    }
}
