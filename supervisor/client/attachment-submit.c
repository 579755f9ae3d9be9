/* SPDX-License-Identifier: MIT */
#include "supervisor/client/attachment-private.h"

#include "shared/base/cleanup.h"
#include "supervisor/channel/answer.h"
#include "supervisor/context.h"
#include "supervisor/group/group.h"
#include <errno.h>
#include <string.h>

static int attachment_refuse_submit(struct attachment *attachment, uint64_t cookie, int r)
{
    switch (r) {
    case CELL_E_BUSY:
        return answer_refuse(&attachment->endpoint, cookie, EBUSY,
                             "the queue is full (QueueMax=, QueueMemoryMax=)");
    case CELL_E_TOO_LARGE:
        return answer_refuse(&attachment->endpoint, cookie, EMSGSIZE,
                             "the payload is above QueueMemoryMax= of the group");
    case CELL_E_EXISTS:
        return answer_refuse(&attachment->endpoint, cookie, EEXIST, "a job with this id exists");
    case CELL_E_BAD_ID:
        return answer_refuse(&attachment->endpoint, cookie, EINVAL,
                             "malformed id: 1 to 64 characters of A-Z a-z 0-9 . _ : @ -");
    case CELL_E_NO_KEY:
        return answer_refuse(&attachment->endpoint, cookie, EINVAL,
                             "the group has a cell for each key (Cells=by-key): a key is needed");
    case CELL_E_BAD_KEY:
        return answer_refuse(
            &attachment->endpoint, cookie, EINVAL,
            "malformed key: with Cells=by-key 1 to 64 characters of A-Z a-z 0-9 . _ : @ -");
    case CELL_E_TOO_MANY:
        return answer_refuse(&attachment->endpoint, cookie, ENOSPC,
                             "no new cell for this key: the group has as many as CellsMax=");
    case CELL_E_STOPPING:
        return answer_refuse(&attachment->endpoint, cookie, ESHUTDOWN,
                             "no new jobs: it is stopping");
    default:
        return answer_errno(&attachment->endpoint, cookie, r);
    }
}

static bool is_long(usec_t backoff)
{
    return backoff > JOB_BACKOFF_MAX;
}

/* The bounds that the socket has, too (BadOption). NULL = all is well. */
static const char *bad_option(const struct protocol_submit *submit)
{
    if (submit->max_retries != PROTOCOL_DEFAULT_RETRIES && submit->max_retries > JOB_RETRIES_MAX)
        return "max_retries: 0 to 1000000";
    if (submit->priority != PROTOCOL_DEFAULT_PRIORITY && submit->priority >= QUEUE_PRIORITIES)
        return "priority: 0 to 63";
    if (submit->delay > 0 && submit->at > 0)
        return "delay or at, not both";
    if (submit->delay > JOB_DELAY_MAX)
        return "delay: at most 366 days";
    if (submit->at > 0 && submit->at > usec_add(clock_realtime(), JOB_DELAY_MAX))
        return "at: at most 366 days from now";
    if (is_long(submit->backoff_min) || is_long(submit->backoff_max))
        return "backoff_min, backoff_max: at most 1 day";
    if (submit->backoff_max != PROTOCOL_DEFAULT_USEC && submit->backoff_min > submit->backoff_max)
        return "backoff_min is above backoff_max";
    return NULL;
}

static int attachment_submit(struct attachment *attachment, struct group *group,
                             const struct protocol_submit *submit, struct job **ret)
{
    char name[PROTOCOL_ID_TEXT] = "", key[PROTOCOL_KEY_MAX];
    const struct cell_request request = {
        .name = name,
        .key = key,
        .key_size = submit->key_size,
        .keep_result = !(submit->flags & PROTOCOL_SUBMIT_DO),
        .submitter_uid = attachment->uid,
        .options = {.max_retries = submit->max_retries,
                    .timeout = submit->timeout,
                    .backoff_min = submit->backoff_min,
                    .backoff_max = submit->backoff_max,
                    .priority = submit->priority},
        .delay = submit->delay,
        .at = submit->at,
        .wait = submit->wait,
        .deadline = submit->deadline,
        .waiter = &attachment->room,
        .data = submit->payload.data,
        .size = submit->payload.size,
        .blob = attachment->has_blob ? &attachment->blob : NULL,
    };

    /* Copied before it is looked at: the record lies in the client's memory. */
    memcpy(name, submit->name, submit->name_size);
    if (submit->key_size > 0)
        memcpy(key, submit->key, submit->key_size);
    if (submit->name_size > 0 && !protocol_name_valid(name, submit->name_size))
        return CELL_E_BAD_ID;
    return group_submit(group, &request, request.keep_result ? NULL : attachment_on_change,
                        attachment, submit->cookie, ret);
}

void attachment_forget_submit(struct attachment *attachment)
{
    cell_waiter_reset(&attachment->room);
    payload_deinit(&attachment->blob);
    attachment->has_blob = false;
}

void attachment_on_turn(struct cell_waiter *waiter)
{
    endpoint_resume(&attachment_of(waiter, room)->endpoint);
}

/*
 * A blob is fetched also for a job that is refused: the next one counts on its turn. And only once
 * for a record that is read several times, while its job waits for room.
 */
static int attachment_take_blob(struct attachment *attachment, const struct protocol_submit *submit)
{
    int r;

    if (attachment->has_blob)
        return submit->payload.form == PAYLOAD_BLOB &&
                       submit->payload.serial == attachment->blob_serial &&
                       submit->payload.size == attachment->blob.size
                   ? 0
                   : -EBADMSG;
    if (submit->payload.form != PAYLOAD_BLOB)
        return 0;
    r = endpoint_take(&attachment->endpoint, &submit->payload, &attachment->blob);
    attachment->blob_serial = submit->payload.serial;
    attachment->has_blob = r == 0;
    return r;
}

int attachment_on_submit(struct attachment *attachment, const struct ring_record *record)
{
    struct protocol_submit submit;
    const char *problem;
    struct group *group;
    struct job *job;
    void *room;
    int r;

    r = protocol_get_submit(record->body, record->size, &submit);
    if (r < 0)
        return r;
    if (submit.name_size >= PROTOCOL_ID_TEXT || submit.key_size > PROTOCOL_KEY_MAX)
        return -EBADMSG;
    /* No job is accepted whose acceptance cannot be told. */
    r = endpoint_reserve(&attachment->endpoint, PROTOCOL_BODY_MAX, &room);
    if (r != 0)
        return r;
    r = attachment_take_blob(attachment, &submit);
    if (r == -EMFILE)
        return answer_refuse(&attachment->endpoint, submit.cookie, EBUSY,
                             "too many large payloads are kept");
    if (r == -ENOMEM)
        return answer_errno(&attachment->endpoint, submit.cookie, r);
    if (r < 0)
        return r;
    if (!attachment->may_change)
        return answer_refuse(&attachment->endpoint, submit.cookie, EPERM, "not permitted");
    if (attachment->n_waiters >= ATTACHMENT_WAITERS_MAX)
        return answer_refuse(&attachment->endpoint, submit.cookie, EBUSY,
                             "too many jobs are waited for");
    group = registry_get(&attachment->context->registry, submit.group);
    problem = bad_option(&submit);
    if (problem)
        return answer_refuse(&attachment->endpoint, submit.cookie, EINVAL, problem);
    if (!group || group->config->type != CONFIG_ACTOR)
        return answer_refuse(&attachment->endpoint, submit.cookie, ENOENT, "the group is gone");
    r = attachment_submit(attachment, group, &submit, &job);
    if (r == CELL_E_WAIT)
        return ENDPOINT_E_FULL;
    if (r != 0)
        return attachment_refuse_submit(attachment, submit.cookie, r);
    if (job->keep_result)
        return answer_accept(&attachment->endpoint, submit.cookie, &job->id);
    attachment_wait(attachment, &job->submitter);
    return 0;
}
