/* SPDX-License-Identifier: MIT */
#include "supervisor/client/attachment-save.h"

#include "supervisor/channel/answer.h"
#include "supervisor/client/attachment-private.h"
#include "supervisor/message/actor-save.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The kinds of calls that a client waits for. The values are saved. */
enum wait {
    WAIT_FOR_END,             /* of a job whose result is kept */
    WAIT_FOR_OWN_END,         /* of a job whose result only its submitter gets */
    WAIT_FOR_ANY_JOB,         /* a WAIT whose job is looked for */
    WAIT_FOR_CANCEL,          /* a CANCEL whose job is looked for */
    WAIT_FOR_ACCEPTED,        /* a durable job to be written */
    WAIT_FOR_CANCELLED,       /* its cancellation to be written */
    WAIT_FOR_CANCELLED_AGAIN, /* the same, which another request has asked for before */
    WAIT_FOR_WITHDRAW,        /* a WITHDRAW whose job is looked for */
    _WAIT_N,
};

/* ---- saving ---- */

static void put_id(struct saved_writer *row, const struct protocol_id *id)
{
    saved_put_number(row, id->high);
    saved_put_number(row, id->low);
    saved_put_text(row, id->name);
}

static void put_job_id(struct saved_writer *row, const struct job *job)
{
    struct protocol_id id;

    job_get_id(job, &id);
    put_id(row, &id);
}

static int save_submit(const struct attachment *attachment, struct saver *saver)
{
    struct saved_writer row = {0};

    if (attachment->room.deadline == 0 && !attachment->has_blob)
        return 0;
    saved_put_number(&row, attachment->actor->reference);
    saved_put_number(&row, attachment->room.since);
    saved_put_number(&row, attachment->room.deadline);
    saved_put_number(&row, attachment->has_blob);
    saved_put_number(&row, attachment->blob_serial);
    return saved_add(saver, CLIENT_SUBMIT_ROW, &row,
                     attachment->has_blob ? &attachment->blob : NULL);
}

static enum wait wait_of(const struct job_waiter *waiter)
{
    if (waiter->changed == attachment_on_accepted)
        return WAIT_FOR_ACCEPTED;
    if (waiter->changed == attachment_on_cancelled)
        return WAIT_FOR_CANCELLED;
    if (waiter->changed == attachment_on_cancelled_again)
        return WAIT_FOR_CANCELLED_AGAIN;
    return waiter->job->keep_result ? WAIT_FOR_END : WAIT_FOR_OWN_END;
}

/* If it waits for the disk, the store does not work, and refuses it when it is closed. */
static int save_waiting(const struct attachment *attachment, struct saver *saver)
{
    int r = 0;

    list_for_each (node, &attachment->waiting) {
        const struct job_waiter *waiter = list_entry(node, struct job_waiter, owner_link);
        const enum wait wait = wait_of(waiter);
        struct saved_writer row = {0};

        if (wait != WAIT_FOR_END && wait != WAIT_FOR_OWN_END)
            continue;
        saved_put_number(&row, attachment->actor->reference);
        saved_put_number(&row, waiter->cookie);
        saved_put_number(&row, wait);
        put_job_id(&row, waiter->job);
        r = saved_add(saver, CLIENT_WAIT_ROW, &row, NULL);
        if (r < 0)
            break;
    }
    return r;
}

static enum wait wait_of_search(const struct search *search)
{
    if (search->found == attachment_cancel_job)
        return WAIT_FOR_CANCEL;
    if (search->found == attachment_withdraw_job)
        return WAIT_FOR_WITHDRAW;
    if (search->found == attachment_watch_job)
        return WAIT_FOR_ANY_JOB;
    return search->found == attachment_watch_own_job ? WAIT_FOR_OWN_END : WAIT_FOR_END;
}

static int save_searches(const struct attachment *attachment, const struct list *searches,
                         struct saver *saver)
{
    int r = 0;

    list_for_each (node, searches) {
        const struct search *search = list_entry(node, struct search, link);
        struct saved_writer row = {0};

        saved_put_number(&row, attachment->actor->reference);
        saved_put_number(&row, search->cookie);
        saved_put_number(&row, wait_of_search(search));
        put_id(&row, &search->id);
        r = saved_add(saver, CLIENT_WAIT_ROW, &row, NULL);
        if (r < 0)
            break;
    }
    return r;
}

/* The job itself may be gone. */
static int save_answer(const struct attachment *attachment, const struct job_waiter *waiter,
                       struct saver *saver)
{
    const struct job *job = waiter->job;
    const enum wait wait = wait_of(waiter);
    const bool result = job->state == JOB_SUCCEEDED || job->state == JOB_REJECTED;
    struct saved_writer row = {0};

    saved_put_number(&row, attachment->actor->reference);
    saved_put_number(&row, waiter->cookie);
    saved_put_number(&row, wait);
    put_job_id(&row, job);
    saved_put_number(&row, waiter->refusal);
    saved_put_number(&row, job->state);
    saved_put_number(&row, (uint32_t)job->code);
    saved_put_number(&row, job->attempt);
    saved_put_text(&row, job->reason);
    saved_put_number(&row, job->cause);
    return saved_add(saver, CLIENT_ANSWER_ROW, &row, result ? &job->result : NULL);
}

static int save_owed(const struct attachment *attachment, struct saver *saver)
{
    int r = 0;

    list_for_each (node, &attachment->owed) {
        r = save_answer(attachment, list_entry(node, struct job_waiter, owner_link), saver);
        if (r < 0)
            break;
    }
    return r;
}

static int save_attachment(const struct actor *actor, struct saver *saver)
{
    const struct attachment *attachment = actor->owner;
    int r;

    if (!actor_is(actor, ACTOR_CLIENT))
        return 0;
    r = save_submit(attachment, saver);
    if (r == 0)
        r = save_owed(attachment, saver);
    if (r == 0)
        r = save_searches(attachment, &attachment->searched, saver);
    if (r == 0)
        r = save_searches(attachment, &attachment->searches, saver);
    return r == 0 ? save_waiting(attachment, saver) : r;
}

int attachments_save(const struct group_context *context, struct saver *saver)
{
    return actors_save_each(context->messages, saver, save_attachment);
}

void attachments_drop_saved(const struct group_context *context)
{
    const struct actor *actor;
    size_t cursor = 0;

    while ((actor = actor_next(&context->messages->actors, &cursor)))
        if (actor_is(actor, ACTOR_CLIENT))
            attachment_drop_saved(actor->owner);
}

/* ---- restoring ---- */

/* Returns NULL if the client is gone. */
static struct attachment *get_attachment(const struct group_context *context,
                                         struct saved_reader *row)
{
    const struct actor *actor = actor_get(context->messages, saved_get_number(row));

    return actor && actor_is(actor, ACTOR_CLIENT) ? actor->owner : NULL;
}

static void get_id(struct saved_reader *row, struct protocol_id *ret)
{
    ret->high = saved_get_number(row);
    ret->low = saved_get_number(row);
    saved_get_text(row, ret->name, sizeof(ret->name));
}

/* The client has not consumed its record, which is read again. */
int attachment_submit_restore_row(const struct group_context *context, struct saved_reader *row)
{
    struct attachment *attachment = get_attachment(context, row);
    const usec_t since = saved_get_number(row), deadline = saved_get_number(row);
    const bool has_blob = saved_get_below(row, 1);
    const uint64_t serial = saved_get_number(row);
    int r = 0;

    if (row->damaged)
        return -EBADMSG;
    if (!attachment)
        return 0;
    if (has_blob)
        r = payload_set(&attachment->blob, row->payload, row->payload_size);
    if (r < 0)
        return r;
    attachment->has_blob = has_blob;
    attachment->blob_serial = serial;
    attachment->room.since = since;
    attachment->room.deadline = deadline;
    return 0;
}

/* It has ended, and its result is not kept; or it could not be brought back. */
static int refuse_lost(struct attachment *attachment, uint64_t cookie)
{
    return answer_refuse(&attachment->endpoint, cookie, ECONNRESET,
                         "the supervisor was upgraded, and the end of the job is not known");
}

static int watch_again(struct attachment *attachment, uint64_t cookie, struct job *job)
{
    return job ? attachment_watch_job(attachment, cookie, job) : refuse_lost(attachment, cookie);
}

/* Once its submitter waits for the end again, nobody else needs the result, as nobody knows its id.
 * A chosen one is kept: its submitter may ask for it. */
int attachment_watch_own_job(struct attachment *attachment, uint64_t cookie, struct job *job)
{
    const unsigned n_before = attachment->n_waiters;
    int r = watch_again(attachment, cookie, job);

    if (job && !job->name && attachment->n_waiters > n_before)
        job->keep_result = false;
    return r;
}

int attachment_wait_restore_row(const struct group_context *context, struct saved_reader *row)
{
    static const attachment_found_fn found[_WAIT_N] = {
        [WAIT_FOR_END] = watch_again,
        [WAIT_FOR_OWN_END] = attachment_watch_own_job,
        [WAIT_FOR_ANY_JOB] = attachment_watch_job,
        [WAIT_FOR_CANCEL] = attachment_cancel_job,
        [WAIT_FOR_WITHDRAW] = attachment_withdraw_job,
    };
    struct attachment *attachment = get_attachment(context, row);
    struct protocol_by_id wanted = {.cookie = saved_get_number(row)};
    const enum wait wait = (enum wait)saved_get_below(row, _WAIT_N - 1);
    int r;

    get_id(row, &wanted.id);
    if (row->damaged || !found[wait])
        return -EBADMSG;
    if (!attachment)
        return 0;
    r = attachment_search(attachment, &wanted, found[wait]);
    return r < 0 ? refuse_lost(attachment, wanted.cookie) : r;
}

/* Makes a job that is in no cell, and cannot be found. Returns 0 or -ENOMEM. */
static int make_ended_job(struct job_table *jobs, const struct protocol_id *id, struct job **ret)
{
    char *name = NULL;
    int r;

    if (id->name[0] != '\0' && !(name = strdup(id->name)))
        return -ENOMEM;
    r = job_new(jobs, "", ret);
    if (r != 0) {
        free(name);
        return r;
    }
    (*ret)->id_high = id->high;
    (*ret)->id_low = id->low;
    (*ret)->name = name;
    (*ret)->id_is_free = true;
    return 0;
}

/* Returns 0, -EBADMSG or -ENOMEM. */
static int get_end(struct saved_reader *row, struct job *job)
{
    const uint64_t state = saved_get_below(row, _JOB_N_STATES - 1);
    const char *reason;

    job->code = (int32_t)saved_get_below(row, UINT32_MAX);
    job->attempt = (uint32_t)saved_get_below(row, UINT32_MAX);
    reason = saved_get_string(row);
    job->cause = (enum protocol_cause)saved_get_below(row, PROTOCOL_CAUSE_PAYLOAD_LOST);
    if (row->damaged)
        return -EBADMSG;
    /* One that was accepted lives on elsewhere. */
    job->state = state < JOB_SUCCEEDED ? JOB_CANCELLED : (uint8_t)state;
    if (reason)
        job_set_reason(job, reason);
    return payload_set(&job->result, row->payload, row->payload_size);
}

/* Sends it, or has it wait for room again. */
static int owe(struct attachment *attachment, uint64_t cookie, enum wait wait, uint8_t refusal,
               struct job *job)
{
    static void (*const changed[_WAIT_N])(struct job_waiter * waiter, struct job * job) = {
        [WAIT_FOR_END] = attachment_on_change,
        [WAIT_FOR_OWN_END] = attachment_on_change,
        [WAIT_FOR_ACCEPTED] = attachment_on_accepted,
        [WAIT_FOR_CANCELLED] = attachment_on_cancelled,
        [WAIT_FOR_CANCELLED_AGAIN] = attachment_on_cancelled_again,
    };
    struct job_waiter *waiter;

    if (!changed[wait])
        return -EBADMSG;
    waiter = job_waiter_new(attachment->context->jobs, job);
    if (!waiter)
        return -ENOMEM;
    waiter->changed = changed[wait];
    waiter->owner = attachment;
    waiter->cookie = cookie;
    waiter->refusal = refusal;
    attachment_wait(attachment, waiter);
    list_unlink(&waiter->link);
    waiter->changed(waiter, job);
    return 0;
}

int attachment_answer_restore_row(const struct group_context *context, struct saved_reader *row)
{
    struct attachment *attachment = get_attachment(context, row);
    const uint64_t cookie = saved_get_number(row);
    const enum wait wait = (enum wait)saved_get_below(row, _WAIT_N - 1);
    struct protocol_id id;
    struct job *job;
    uint8_t refusal;
    int r;

    get_id(row, &id);
    refusal = (uint8_t)saved_get_below(row, UINT8_MAX);
    if (row->damaged)
        return -EBADMSG;
    if (!attachment)
        return 0;
    r = make_ended_job(context->jobs, &id, &job);
    if (r != 0)
        return r;
    job->state = JOB_CANCELLED;
    r = get_end(row, job);
    if (r == 0)
        r = owe(attachment, cookie, wait, refusal, job);
    job_unref(context->jobs, job);
    return r;
}
