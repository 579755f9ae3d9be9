/* SPDX-License-Identifier: MIT */

/* Waits on behalf of an attached client for the ends of jobs, and for durable jobs to be written.
 */

#include "supervisor/client/attachment-private.h"

#include "shared/base/fault.h"
#include "supervisor/channel/answer.h"
#include <errno.h>
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
        return PROTOCOL_END_CANCELLED;
    default:
        return PROTOCOL_END_DEAD;
    }
}

/* 0, ENDPOINT_E_FULL, or -errno. */
static int attachment_send_done(struct attachment *attachment, uint64_t cookie,
                                const struct job *job)
{
    const uint32_t reason_size = job->reason ? (uint32_t)strlen(job->reason) : 0;
    uint32_t room = DONE_RECORD_FIXED + reason_size + (uint32_t)sizeof(RESULT_LOST);
    struct protocol_done done; /* not cleared: a name in its id takes most of it */
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
    done.cookie = cookie;
    job_get_id(job, &done.id);
    done.end = end_of(job);
    done.cause = job->cause;
    done.code = job->code;
    done.attempts = job->attempt;
    done.reason = job->reason;
    done.reason_size = reason_size;
    if (r < 0) {
        /* No descriptor or memory for a large result: sends the end without it. */
        done.payload = (struct payload_wire){.form = PAYLOAD_INLINE};
        done.reason = RESULT_LOST;
        done.reason_size = sizeof(RESULT_LOST) - 1;
    }
    r = protocol_put_done(body, room, &done);
    if (r < 0)
        return r;
    FAULT_POINT("client.done");
    /* A dead job goes out in this turn; others wait briefly for the client's further jobs. */
    endpoint_commit_of_many(&attachment->endpoint, PROTOCOL_DONE, (uint32_t)r,
                            job->state == JOB_DEAD ? 0 : attachment->n_waiters);
    return 0;
}

void attachment_wait(struct attachment *attachment, struct job_waiter *waiter,
                     enum attachment_wait wait)
{
    waiter->changed = attachment_on_change;
    waiter->owner = attachment;
    waiter->wait = (uint8_t)wait;
    list_push_back(&attachment->waiting, &waiter->owner_link);
    attachment->n_waiters++;
}

static void waiter_release(struct job_waiter *waiter)
{
    struct attachment *attachment = waiter->owner;

    attachment->n_waiters--;
    job_waiter_free(attachment->context->jobs, waiter);
}

/* Sends what the waiter has waited for. Returns 0, ENDPOINT_E_FULL, or -errno. */
static int attachment_send(struct attachment *attachment, const struct job_waiter *waiter,
                           const struct job *job)
{
    if (waiter->refusal != 0)
        return attachment_refuse_submit(attachment, waiter->cookie, waiter->refusal);
    if (waiter->wait == WAIT_FOR_END)
        return attachment_send_done(attachment, waiter->cookie, job);
    if (waiter->wait != WAIT_FOR_ACCEPTED && job_ended(job) && job->state != JOB_CANCELLED)
        return answer_refuse(&attachment->endpoint, waiter->cookie, ESRCH, "the job has ended");
    if (waiter->wait == WAIT_FOR_CANCELLED_AGAIN)
        return attachment_refuse_second_cancel(attachment, waiter->cookie);
    return attachment_answer_accepted(attachment, waiter->cookie, job);
}

/* Sends it now, or when there is room. */
static void attachment_owe(struct job_waiter *waiter, struct job *job)
{
    struct attachment *attachment = waiter->owner;
    int r;

    if (job->refusal != 0)
        waiter->refusal = job->refusal; /* that of a change is gone when there is room */
    r = list_empty(&attachment->owed) ? attachment_send(attachment, waiter, job) : ENDPOINT_E_FULL;

    if (r != ENDPOINT_E_FULL) {
        /* Any other error means a broken endpoint, whose client is being removed. */
        waiter_release(waiter);
        return;
    }
    list_unlink(&waiter->owner_link);
    list_push_back(&attachment->owed, &waiter->owner_link);
    (void)job_ref(job);
}

void attachment_on_change(struct job_waiter *waiter, struct job *job)
{
    if (waiter->wait != WAIT_FOR_END || job_ended(job))
        attachment_owe(waiter, job);
}

int attachment_send_owed(struct attachment *attachment)
{
    struct list *node;

    if (attachment_send_searched(attachment) == ENDPOINT_E_FULL)
        return ENDPOINT_E_FULL;
    while ((node = list_first(&attachment->owed))) {
        struct job_waiter *waiter = list_entry(node, struct job_waiter, owner_link);
        struct job *job = waiter->job;
        int r = attachment_send(attachment, waiter, job);

        if (r == ENDPOINT_E_FULL)
            return r;
        waiter_release(waiter);
        job_unref(attachment->context->jobs, job);
    }
    return 0;
}

int attachment_watch_job(struct attachment *attachment, uint64_t cookie, struct job *job)
{
    struct job_waiter *waiter;

    if (!job)
        return answer_refuse(&attachment->endpoint, cookie, ESRCH, "no such job");
    /* The end of a job carries its result. */
    if (!attachment->may_read(attachment->userdata, job))
        return answer_refuse(&attachment->endpoint, cookie, EPERM, "not permitted");
    if (job_ended(job))
        return attachment_send_done(attachment, cookie, job);
    if (attachment->n_waiters >= ATTACHMENT_WAITERS_MAX)
        return answer_refuse(&attachment->endpoint, cookie, EBUSY, "too many jobs are waited for");
    waiter = job_waiter_new(attachment->context->jobs, job);
    if (!waiter)
        return answer_refuse(&attachment->endpoint, cookie, ENOMEM, "out of memory");
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

/* Drops at most `max` owed records. Returns how many. */
static size_t drop_owed(struct attachment *attachment, size_t max)
{
    struct list *node;
    size_t n = 0;

    for (; n < max && (node = list_first(&attachment->owed)); n++) {
        struct job_waiter *waiter = list_entry(node, struct job_waiter, owner_link);
        struct job *job = waiter->job;
        waiter_release(waiter);
        job_unref(attachment->context->jobs, job);
    }
    return n;
}

bool attachment_drop_waiters(struct attachment *attachment, size_t max)
{
    struct list *node;
    size_t n = drop_owed(attachment, max);

    for (; n < max && (node = list_first(&attachment->waiting)); n++)
        waiter_release(list_entry(node, struct job_waiter, owner_link));
    return attachment->n_waiters == 0;
}

void attachment_drop_saved(struct attachment *attachment)
{
    list_for_each_safe (node, &attachment->waiting) {
        struct job_waiter *waiter = list_entry(node, struct job_waiter, owner_link);

        if (waiter->wait == WAIT_FOR_END)
            waiter_release(waiter);
    }
    (void)drop_owed(attachment, SIZE_MAX);
}
