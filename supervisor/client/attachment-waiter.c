/* SPDX-License-Identifier: MIT */

/* Waits on behalf of an attached client for the ends of jobs, and for durable jobs to be written.
 */

#include "supervisor/client/attachment-private.h"

#include "supervisor/channel/held-blob.h"
#include "supervisor/message/delivery/delivery.h"
#include <errno.h>
#include <string.h>

static enum protocol_end end_of(const struct job *job)
{
    switch (job->state) {
    case JOB_SUCCEEDED:
        return PROTOCOL_END_SUCCEEDED;
    case JOB_REJECTED:
        return PROTOCOL_END_REJECTED;
    case JOB_CANCELLED:
        return PROTOCOL_END_CANCELLED;
    default:
        return PROTOCOL_END_DEAD;
    }
}

static void attachment_send_done(struct attachment *attachment, uint64_t cookie,
                                 const struct job *job)
{
    struct protocol_done done; /* not cleared: a name in its id takes most of it */

    done.cookie = cookie;
    job_get_id(job, &done.id);
    done.end = end_of(job);
    done.cause = job->cause;
    done.code = job->code;
    done.attempts = job->attempt;
    done.reason = job->reason;
    done.reason_size = job->reason ? (uint32_t)strlen(job->reason) : 0;
    /* A dead job goes out in this turn; others wait briefly for the client's further jobs. */
    delivery_answer_end(attachment->actor, &done, &job->result,
                        job->state == JOB_DEAD ? 0 : attachment->n_waiters);
}

bool attachment_waits_for_many(const struct attachment *attachment)
{
    const struct blob_share *user = attachment->endpoint.blobs;

    return attachment->n_waiters >= ATTACHMENT_WAITERS_MAX ||
           (attachment->actor->restricted && user &&
            user->n_waiters >= ATTACHMENT_WAITERS_OF_USER_MAX);
}

void attachment_wait(struct attachment *attachment, struct job_waiter *waiter,
                     enum attachment_wait wait)
{
    waiter->changed = attachment_on_change;
    waiter->owner = attachment;
    waiter->wait = (uint8_t)wait;
    list_push_back(&attachment->waiting, &waiter->owner_link);
    attachment->n_waiters++;
    if (attachment->endpoint.blobs)
        attachment->endpoint.blobs->n_waiters++;
}

static void waiter_release(struct job_waiter *waiter)
{
    struct attachment *attachment = waiter->owner;

    attachment->n_waiters--;
    if (attachment->endpoint.blobs)
        attachment->endpoint.blobs->n_waiters--;
    job_waiter_free(attachment->context->jobs, waiter);
}

/* Sends what the waiter has waited for. */
static void attachment_send(struct attachment *attachment, const struct job_waiter *waiter,
                            const struct job *job)
{
    if (job->refusal != 0)
        (void)attachment_refuse_submit(attachment, waiter->cookie, job->refusal);
    else if (waiter->wait == WAIT_FOR_END)
        attachment_send_done(attachment, waiter->cookie, job);
    else if (waiter->wait != WAIT_FOR_ACCEPTED && job_ended(job) && job->state != JOB_CANCELLED)
        (void)attachment_refuse(attachment, waiter->cookie, ESRCH, "the job has ended");
    else if (waiter->wait == WAIT_FOR_CANCELLED_AGAIN)
        (void)attachment_refuse_second_cancel(attachment, waiter->cookie);
    else
        (void)attachment_answer_accepted(attachment, waiter->cookie, job, false);
}

void attachment_on_change(struct job_waiter *waiter, struct job *job)
{
    if (waiter->wait == WAIT_FOR_END && !job_ended(job))
        return;
    attachment_send(waiter->owner, waiter, job);
    waiter_release(waiter);
}

int attachment_watch_job(struct attachment *attachment, uint64_t cookie, struct job *job)
{
    struct job_waiter *waiter;

    if (!job)
        return attachment_refuse(attachment, cookie, ESRCH, "no such job");
    /* The end of a job carries its result. */
    if (!attachment->may_read(attachment->userdata, job))
        return attachment_refuse(
            attachment, cookie, EPERM,
            "not permitted: the job's result is for its submitter, User= of its "
            "group, and ReadGroup=");
    if (job_ended(job)) {
        attachment_send_done(attachment, cookie, job);
        return 0;
    }
    if (attachment_waits_for_many(attachment))
        return attachment_refuse(attachment, cookie, EBUSY, "too many jobs are waited for");
    waiter = job_waiter_new(attachment->context->jobs, job);
    if (!waiter)
        return attachment_refuse(attachment, cookie, ENOMEM, "out of memory");
    waiter->cookie = cookie;
    attachment_wait(attachment, waiter, WAIT_FOR_END);
    job_waiter_be_patient(waiter);
    return 0;
}

int attachment_on_watch(struct attachment *attachment, const struct ring_record *record)
{
    struct protocol_by_id watch;
    int r = protocol_get_by_id(record->body, record->size, &watch);

    return r < 0 ? r : attachment_find_job(attachment, &watch, WAIT_FOR_ANY_JOB);
}

bool attachment_drop_waiters(struct attachment *attachment, size_t max)
{
    struct list *node;
    size_t n = 0;

    for (; n < max && (node = list_first(&attachment->waiting)); n++)
        waiter_release(list_entry(node, struct job_waiter, owner_link));
    return attachment->n_waiters == 0;
}

void attachment_drop_saved(struct attachment *attachment)
{
    list_for_each_entry_safe (waiter, &attachment->waiting, struct job_waiter, owner_link)
        if (waiter->wait == WAIT_FOR_END)
            waiter_release(waiter);
}
