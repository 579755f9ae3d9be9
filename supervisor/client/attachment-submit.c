/* SPDX-License-Identifier: MIT */

/* Takes jobs from attached clients, and keeps those that wait for room in a queue. */

#include "supervisor/client/attachment-private.h"

#include "shared/base/fault.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/queue.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

int attachment_refuse_submit(struct attachment *attachment, uint64_t cookie, int r)
{
    const struct refusal *refusal = refusal_of(r);

    if (!refusal)
        return attachment_refuse_errno(attachment, cookie, r);
    return attachment_refuse(attachment, cookie, refusal->error, refusal->text);
}

static int attachment_refuse_option(struct attachment *attachment, uint64_t cookie,
                                    const struct job_options_problem *problem)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "%s: %s", problem->option, problem->allowed);
    return attachment_refuse(attachment, cookie, EINVAL, text);
}

static bool may_read(void *userdata, const struct job *job)
{
    const struct attachment *attachment = userdata;

    return attachment->may_read(attachment->userdata, job);
}

static bool may_change(void *userdata, const struct job *job)
{
    return attachment_may_cancel(userdata, job);
}

/* What few jobs ask for, and the memory to which that points. */
struct rare_submit {
    char bytes[PROTOCOL_RARE_MAX]; /* the record itself lies in the client's memory */
    struct tie_request ties;
    struct cell_request_rare request;
};

/* Returns 0 or -EINVAL. */
static int take_ties(struct attachment *attachment, const struct protocol_submit_rare *read,
                     struct tie_request *ties)
{
    int r = 0;

    ties->list.n = 0;
    ties->list.batch = (struct tie){.id = ""};
    ties->may_read = may_read;
    ties->may_change = may_change;
    ties->userdata = attachment;
    if (read->after_size > 0)
        r = tie_list_parse(&ties->list, read->after, read->after_size,
                           (enum tie_condition)read->condition);
    if (r == 0 && read->batch_size > 0)
        r = tie_set_id(&ties->list.batch, read->batch, read->batch_size);
    return r;
}

/* Returns 0, CELL_E_NO_PARENT or -EBADMSG. */
static int take_rare(struct attachment *attachment, const struct protocol_submit *submit,
                     struct rare_submit *ret)
{
    struct protocol_submit_rare read;
    int r;

    memcpy(ret->bytes, submit->rare, submit->rare_size);
    r = protocol_get_submit_rare(ret->bytes, submit->rare_size, &read);
    if (r < 0)
        return r;
    ret->request = (struct cell_request_rare){
        .delay = read.delay,
        .at = read.at,
        .unique_key = read.unique,
        .unique_size = read.unique_size,
        .on_conflict = read.on_conflict,
        .debounce = read.debounce,
        .debounce_max = read.debounce_max,
        .tags = read.tags,
        .tags_size = read.tags_size,
        .traceparent = read.traceparent_size > 0 ? read.traceparent : NULL,
        .traceparent_size = read.traceparent_size,
    };
    if (read.after_size == 0 && read.batch_size == 0)
        return 0;
    ret->request.ties = &ret->ties;
    return take_ties(attachment, &read, &ret->ties) < 0 ? CELL_E_NO_PARENT : 0;
}

/* Returns as group_submit(); or -EINVAL with the problem of an option. */
static int attachment_submit(struct attachment *attachment, struct group *group,
                             const struct protocol_submit *submit, struct cell_request_rare *rare,
                             struct job **ret, const struct job_options_problem **ret_problem)
{
    char name[PROTOCOL_ID_TEXT], key[PROTOCOL_KEY_MAX];
    const struct cell_request request = {
        .name = name,
        .key = key,
        .key_size = submit->key_size,
        .keep_result =
            !(submit->flags & PROTOCOL_SUBMIT_DO) || submit->flags & PROTOCOL_SUBMIT_KEEP,
        .submitter_uid = attachment->uid,
        .bounded = attachment->actor->restricted,
        .options = {.max_retries = submit->max_retries,
                    .timeout = submit->timeout,
                    .backoff_min = submit->backoff_min,
                    .backoff_max = submit->backoff_max,
                    .priority = submit->priority,
                    .cost = submit->cost},
        .rare = rare,
        .wait = submit->wait,
        .deadline = submit->deadline,
        .waiter = &attachment->room,
        .data = submit->payload.data,
        .size = submit->payload.size,
        .blob = attachment->has_blob ? &attachment->blob : NULL,
        .changed = submit->flags & PROTOCOL_SUBMIT_DO || group->config->durable
                       ? attachment_on_change
                       : NULL,
        .owner = attachment,
        .cookie = submit->cookie,
    };

    /* Copied before the check: the record lies in the client's memory. */
    if (submit->name_size > 0)
        memcpy(name, submit->name, submit->name_size);
    name[submit->name_size] = '\0';
    if (submit->key_size > 0)
        memcpy(key, submit->key, submit->key_size);
    *ret_problem = cell_request_check(&request);
    if (*ret_problem)
        return -EINVAL;
    FAULT_POINT("client.submit");
    if (submit->name_size > 0 && !protocol_name_valid(name, submit->name_size))
        return CELL_E_BAD_ID;
    return group_submit(group, &request, ret);
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

/* Fetches the blob, also of a job that will be refused, as blobs come in order. A record that is
 * read again while its job waits for room has its blob already. */
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

/* Why to refuse a job before it is passed to its group; NULL = no reason. */
static const struct refusal *refuse_early(const struct attachment *attachment,
                                          const struct group *group, uint8_t priority)
{
    static const struct refusal too_early = {
        .error = EPERM, .text = "priority: only 32 (the default) to 63 are permitted"};
    /* Without a text: clients know what the permission needs. */
    static const struct refusal not_permitted = {.error = EPERM, .text = ""};
    static const struct refusal waits = {.error = EBUSY, .text = "too many jobs are waited for"};
    static const struct refusal gone = {.error = ENOENT, .text = "the group is gone"};

    if (attachment->actor->restricted && group &&
        !attachment->may_submit(attachment->userdata, group))
        return &not_permitted;
    if (attachment->actor->restricted && group && priority < QUEUE_PRIORITY_DEFAULT)
        return &too_early;
    if (attachment_waits_for_many(attachment))
        return &waits;
    return !group || group->config->type != CONFIG_ACTOR ? &gone : NULL;
}

int attachment_answer_accepted(struct attachment *attachment, uint64_t cookie,
                               const struct job *job, bool existing)
{
    struct protocol_accepted accepted = {.cookie = cookie};
    uint8_t body[PROTOCOL_BODY_MAX];
    int size;

    job_get_id(job, &accepted.id);
    accepted.existing = existing;
    size = protocol_put_accepted(body, sizeof(body), &accepted);
    delivery_answer(attachment->actor, PROTOCOL_ACCEPTED, body, (uint32_t)size);
    return 0;
}

static int attachment_refuse_taken(struct attachment *attachment, uint64_t cookie,
                                   const struct job *holder)
{
    char text[64 + PROTOCOL_ID_TEXT], id[PROTOCOL_ID_TEXT];
    struct protocol_refused refused = {.cookie = cookie, .error = ENOTUNIQ, .reason = text};
    uint8_t body[PROTOCOL_BODY_MAX];
    int size;

    job_get_id(holder, &refused.holder);
    refused.reason_size = (uint32_t)snprintf(text, sizeof(text), "job %s has the same unique key",
                                             job_format_id(holder, id));
    size = protocol_put_refused(body, sizeof(body), &refused);
    delivery_answer(attachment->actor, PROTOCOL_REFUSED, body, (uint32_t)size);
    return 0;
}

/* Names the job that it cannot depend on. */
static int attachment_refuse_ties(struct attachment *attachment, uint64_t cookie, int r,
                                  const struct tie_request *ties)
{
    const struct refusal *refusal = refusal_of(r);
    char text[PROTOCOL_ID_TEXT + 128];

    (void)snprintf(text, sizeof(text), "job %s: %s", ties->problem, refusal->text);
    return attachment_refuse(attachment, cookie, refusal->error, text);
}

/* Another job takes the place of the one that was submitted. */
static int attachment_take_existing(struct attachment *attachment,
                                    const struct protocol_submit *submit, struct job *job)
{
    if (!(submit->flags & PROTOCOL_SUBMIT_DO))
        return attachment_answer_accepted(attachment, submit->cookie, job, true);
    return attachment->may_read(attachment->userdata, job)
               ? attachment_watch_job(attachment, submit->cookie, job)
               : attachment_refuse_taken(attachment, submit->cookie, job);
}

/* Submits the job once its payload is complete. `rare`: NULL = nothing of it. */
static int attachment_accept_submit(struct attachment *attachment,
                                    const struct protocol_submit *submit,
                                    struct cell_request_rare *rare)
{
    struct group *group = registry_get(attachment->context->registry, submit->group);
    const struct refusal *refusal = refuse_early(attachment, group, submit->priority);
    const struct job_options_problem *problem;
    struct job_waiter *waiter;
    struct job *job;
    int r;

    if (refusal)
        return attachment_refuse(attachment, submit->cookie, refusal->error, refusal->text);
    r = attachment_submit(attachment, group, submit, rare, &job, &problem);
    if (problem)
        return attachment_refuse_option(attachment, submit->cookie, problem);
    if (r == CELL_E_WAIT)
        return ENDPOINT_E_FULL;
    if (r == CELL_E_EXISTING)
        return attachment_take_existing(attachment, submit, job);
    if (r == CELL_E_TAKEN)
        return attachment_refuse_taken(attachment, submit->cookie, job);
    if (r >= CELL_E_NO_PARENT && r <= CELL_E_BATCH_OVER)
        return attachment_refuse_ties(attachment, submit->cookie, r, rare->ties);
    if (r != 0)
        return attachment_refuse_submit(attachment, submit->cookie, r);
    if (!(submit->flags & PROTOCOL_SUBMIT_DO) && !job->record)
        return attachment_answer_accepted(attachment, submit->cookie, job, false);
    waiter = job_first_waiter(job);
    attachment_wait(attachment, waiter,
                    submit->flags & PROTOCOL_SUBMIT_DO ? WAIT_FOR_END : WAIT_FOR_ACCEPTED);
    if (!(submit->flags & PROTOCOL_SUBMIT_DO))
        durable_job_await(job, waiter);
    return 0;
}

int attachment_on_submit(struct attachment *attachment, const struct ring_record *record)
{
    struct rare_submit rare;
    struct protocol_submit submit;
    int r = protocol_get_submit(record->body, record->size, &submit);

    if (r < 0)
        return r;
    r = attachment_take_blob(attachment, &submit);
    if (r == -EMFILE)
        return attachment_refuse(attachment, submit.cookie, EBUSY,
                                 "too many large payloads are kept");
    if (r == 0 && submit.rare_size > 0)
        r = take_rare(attachment, &submit, &rare);
    if (r == 0)
        r = attachment_accept_submit(attachment, &submit,
                                     submit.rare_size > 0 ? &rare.request : NULL);
    else if (r == CELL_E_NO_PARENT)
        r = attachment_refuse_submit(attachment, submit.cookie, r);
    else if (r < 0 && endpoint_is_loss(r))
        r = attachment_refuse_errno(attachment, submit.cookie, r);
    return r;
}
