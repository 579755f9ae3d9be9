/* SPDX-License-Identifier: MIT */

/* Ring clients across an upgrade: what they wait for is saved and restored. */

#include "supervisor/client/attachment.h"

#include "supervisor/client/attachment-private.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include <errno.h>

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

/* If it waits for the disk, the store does not work, and refuses it when it is closed. */
static void save_waiting(const struct attachment *attachment, struct saver *saver)
{
    list_for_each_entry (waiter, &attachment->waiting, struct job_waiter, owner_link) {
        struct wait_row row = {.client = attachment->actor->reference,
                               .cookie = waiter->cookie,
                               .wait = waiter->job->keep_result ? WAIT_FOR_END : WAIT_FOR_OWN_END};

        if (waiter->wait != WAIT_FOR_END)
            continue;
        job_get_id(waiter->job, &row.id);
        record_save(saver, &CLIENT_WAIT_RECORD, &row, NULL);
    }
}

static void save_searches(const struct attachment *attachment, struct saver *saver)
{
    list_for_each_entry (search, &attachment->searches, struct search, link) {
        const struct wait_row row = {.client = attachment->actor->reference,
                                     .cookie = search->cookie,
                                     .wait = search->wait,
                                     .id = search->id};

        record_save(saver, &CLIENT_WAIT_RECORD, &row, NULL);
    }
}

void attachment_save(const struct actor *actor, struct saver *saver)
{
    const struct attachment *attachment = actor->owner;

    if (!actor_is(actor, ACTOR_CLIENT))
        return;
    save_submit(attachment, saver);
    save_searches(attachment, saver);
    save_waiting(attachment, saver);
}

void attachments_drop_saved(const struct group_context *context)
{
    actor_each (actor, &context->messages->actors)
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
    return attachment_refuse(attachment, cookie, ECONNRESET,
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
