/* SPDX-License-Identifier: MIT */

/* Ring clients across an upgrade: what they wait for is saved and restored. */

#include "supervisor/client/attachment.h"

#include "supervisor/channel/answer.h"
#include "supervisor/client/attachment-private.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

#define ROW submit_row
#define SUBMIT_FIELDS(F)                                                                           \
    F(UPGRADE, client, uint64_t, NUMBER(client)) /* the reference of its actor, likewise below */  \
    F(UPGRADE, since, usec_t, NUMBER(since))                                                       \
    F(UPGRADE, deadline, usec_t, NUMBER(deadline))                                                 \
    F(UPGRADE, has_blob, bool, NUMBER(has_blob))                                                   \
    F(UPGRADE, blob_serial, uint64_t, NUMBER(blob_serial))
struct submit_row {
    SUBMIT_FIELDS(MEMBER)
};
const struct record CLIENT_SUBMIT_RECORD = RECORD_OF(CLIENT_SUBMIT_ROW, SUBMIT_FIELDS(TYPED_FIELD));
#undef ROW

struct wait_row {
    uint64_t client, cookie;
    enum attachment_wait wait;
    struct protocol_id id; /* of the job */
};

#define ROW wait_row
#define WAIT_FIELDS(F)                                                                             \
    F(UPGRADE, client, NUMBER(client))                                                             \
    F(UPGRADE, cookie, NUMBER(cookie))                                                             \
    F(UPGRADE, wait, BELOW(wait, _WAIT_N - 1))                                                     \
    F(UPGRADE, id_high, NUMBER(id.high))                                                           \
    F(UPGRADE, id_low, NUMBER(id.low))                                                             \
    F(UPGRADE, id_name, STRING(id.name))
const struct record CLIENT_WAIT_RECORD = RECORD(CLIENT_WAIT_ROW, WAIT_FIELDS);
#undef ROW

/* An answer that is owed: the job itself may be gone. */
#define ROW answer_row
#define ANSWER_FIELDS(F)                                                                           \
    F(UPGRADE, wait, struct wait_row, SUBRECORD(wait, CLIENT_WAIT_RECORD))                         \
    F(UPGRADE, refusal, uint8_t, NUMBER(refusal))                                                  \
    F(UPGRADE, state, uint8_t, BELOW(state, _JOB_N_STATES - 1))                                    \
    F(UPGRADE, code, int32_t, NUMBER(code))                                                        \
    F(UPGRADE, attempt, uint32_t, NUMBER(attempt))                                                 \
    F(UPGRADE, reason, const char *, WORD(reason))                                                 \
    F(UPGRADE, cause, enum protocol_cause, BELOW(cause, PROTOCOL_CAUSE_PAYLOAD_LOST))
struct answer_row {
    ANSWER_FIELDS(MEMBER)
};
const struct record CLIENT_ANSWER_RECORD = RECORD_OF(CLIENT_ANSWER_ROW, ANSWER_FIELDS(TYPED_FIELD));

/* ---- saving ---- */

static void save_submit(const struct attachment *attachment, struct saver *saver)
{
    const struct submit_row row = {
        .client = attachment->actor->reference,
        .since = attachment->room.since,
        .deadline = attachment->room.deadline,
        .has_blob = attachment->has_blob,
        .blob_serial = attachment->blob_serial,
    };

    if (row.deadline != 0 || row.has_blob)
        record_save(saver, &CLIENT_SUBMIT_RECORD, &row, row.has_blob ? &attachment->blob : NULL);
}

static enum attachment_wait wait_of(const struct job_waiter *waiter)
{
    return waiter->wait == WAIT_FOR_END && !waiter->job->keep_result
               ? WAIT_FOR_OWN_END
               : (enum attachment_wait)waiter->wait;
}

static struct wait_row wait_row_of(const struct attachment *attachment,
                                   const struct job_waiter *waiter)
{
    struct wait_row row = {
        .client = attachment->actor->reference, .cookie = waiter->cookie, .wait = wait_of(waiter)};

    job_get_id(waiter->job, &row.id);
    return row;
}

/* If it waits for the disk, the store does not work, and refuses it when it is closed. */
static void save_waiting(const struct attachment *attachment, struct saver *saver)
{
    list_for_each (node, &attachment->waiting) {
        const struct wait_row row =
            wait_row_of(attachment, list_entry(node, struct job_waiter, owner_link));

        if (row.wait == WAIT_FOR_END || row.wait == WAIT_FOR_OWN_END)
            record_save(saver, &CLIENT_WAIT_RECORD, &row, NULL);
    }
}

static void save_searches(const struct attachment *attachment, const struct list *searches,
                          struct saver *saver)
{
    list_for_each (node, searches) {
        const struct search *search = list_entry(node, struct search, link);
        const struct wait_row row = {.client = attachment->actor->reference,
                                     .cookie = search->cookie,
                                     .wait = search->wait,
                                     .id = search->id};

        record_save(saver, &CLIENT_WAIT_RECORD, &row, NULL);
    }
}

static void save_answer(const struct attachment *attachment, const struct job_waiter *waiter,
                        struct saver *saver)
{
    const struct job *job = waiter->job;
    const bool result = job->state == JOB_SUCCEEDED || job->state == JOB_REJECTED;
    const struct answer_row row = {
        .wait = wait_row_of(attachment, waiter),
        .refusal = waiter->refusal,
        .state = job->state,
        .code = job->code,
        .attempt = job->attempt,
        .reason = job->reason,
        .cause = job->cause,
    };

    record_save(saver, &CLIENT_ANSWER_RECORD, &row, result ? &job->result : NULL);
}

void attachment_save(const struct actor *actor, struct saver *saver)
{
    const struct attachment *attachment = actor->owner;

    if (!actor_is(actor, ACTOR_CLIENT))
        return;
    save_submit(attachment, saver);
    list_for_each (node, &attachment->owed)
        save_answer(attachment, list_entry(node, struct job_waiter, owner_link), saver);
    save_searches(attachment, &attachment->searched, saver);
    save_searches(attachment, &attachment->searches, saver);
    save_waiting(attachment, saver);
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
static struct attachment *find_attachment(const struct group_context *context, uint64_t client)
{
    const struct actor *actor = actor_get(context->messages, client);

    return actor && actor_is(actor, ACTOR_CLIENT) ? actor->owner : NULL;
}

/* The client has not consumed its record, which is read again. */
int attachment_submit_restore_row(const struct group_context *context, struct saved_reader *reader)
{
    struct attachment *attachment;
    struct submit_row row = {0};
    int r = 0;

    record_get(reader, &CLIENT_SUBMIT_RECORD, &row);
    if (reader->damaged)
        return -EBADMSG;
    attachment = find_attachment(context, row.client);
    if (!attachment)
        return 0;
    if (row.has_blob)
        r = payload_set(&attachment->blob, reader->payload, reader->payload_size);
    if (r < 0)
        return r;
    attachment->has_blob = row.has_blob;
    attachment->blob_serial = row.blob_serial;
    attachment->room.since = row.since;
    attachment->room.deadline = row.deadline;
    return 0;
}

/* It has ended, and its result is not kept; or it could not be brought back. */
static int refuse_lost(struct attachment *attachment, uint64_t cookie)
{
    return answer_refuse(&attachment->endpoint, cookie, ECONNRESET,
                         "the supervisor was upgraded, and the end of the job is not known");
}

int attachment_watch_again(struct attachment *attachment, uint64_t cookie, struct job *job)
{
    return job ? attachment_watch_job(attachment, cookie, job) : refuse_lost(attachment, cookie);
}

/* Once its submitter waits for the end again, no other client needs the result: none knows its id.
 * A chosen one is kept: its submitter may ask for it. */
int attachment_watch_own_job(struct attachment *attachment, uint64_t cookie, struct job *job)
{
    const unsigned n_before = attachment->n_waiters;
    int r = attachment_watch_again(attachment, cookie, job);

    if (job && !job->name && attachment->n_waiters > n_before)
        job->keep_result = false;
    return r;
}

int attachment_wait_restore_row(const struct group_context *context, struct saved_reader *reader)
{
    struct attachment *attachment;
    struct wait_row row = {0};
    int r;

    record_get(reader, &CLIENT_WAIT_RECORD, &row);
    if (reader->damaged || (row.wait >= WAIT_FOR_ACCEPTED && row.wait <= WAIT_FOR_CANCELLED_AGAIN))
        return -EBADMSG;
    attachment = find_attachment(context, row.client);
    if (!attachment)
        return 0;
    r = attachment_search(attachment, &(struct protocol_by_id){.cookie = row.cookie, .id = row.id},
                          row.wait);
    return r < 0 ? refuse_lost(attachment, row.cookie) : r;
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

/* Returns 0 or -ENOMEM. */
static int set_end(struct job *job, const struct answer_row *row, const struct saved_reader *reader)
{
    /* One that was accepted lives on elsewhere. */
    job->state = row->state < JOB_SUCCEEDED ? JOB_CANCELLED : row->state;
    job->code = row->code;
    job->attempt = row->attempt;
    job->cause = (uint8_t)row->cause;
    if (row->reason)
        job_set_reason(job, row->reason);
    return payload_set(&job->result, reader->payload, reader->payload_size);
}

/* Sends it, or has it wait for room again. */
static int owe(struct attachment *attachment, const struct answer_row *row, struct job *job)
{
    struct job_waiter *waiter;

    if (row->wait.wait > WAIT_FOR_CANCELLED_AGAIN)
        return -EBADMSG;
    waiter = job_waiter_new(attachment->context->jobs, job);
    if (!waiter)
        return -ENOMEM;
    waiter->cookie = row->wait.cookie;
    waiter->refusal = row->refusal;
    attachment_wait(attachment, waiter,
                    row->wait.wait == WAIT_FOR_OWN_END ? WAIT_FOR_END : row->wait.wait);
    list_unlink(&waiter->link);
    waiter->changed(waiter, job);
    return 0;
}

int attachment_answer_restore_row(const struct group_context *context, struct saved_reader *reader)
{
    struct attachment *attachment;
    struct answer_row row = {0};
    struct job *job;
    int r;

    record_get(reader, &CLIENT_ANSWER_RECORD, &row);
    if (reader->damaged)
        return -EBADMSG;
    attachment = find_attachment(context, row.wait.client);
    if (!attachment)
        return 0;
    r = make_ended_job(context->jobs, &row.wait.id, &job);
    if (r != 0)
        return r;
    r = set_end(job, &row, reader);
    if (r == 0)
        r = owe(attachment, &row, job);
    job_unref(context->jobs, job);
    return r;
}
