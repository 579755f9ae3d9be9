/* SPDX-License-Identifier: MIT */
#include "supervisor/client/attachment.h"

#include "supervisor/client/attachment-private.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/request/actor-request.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTACHMENT_RING (UINT32_C(1) << 20)
/* Waiters of a client that has left: less than a microsecond each. */
#define DROPPED_PER_TURN 2048u

void client_name_write(char ret[CLIENT_NAME_SIZE], uint64_t number)
{
    (void)snprintf(ret, CLIENT_NAME_SIZE, "@%" PRIu64, number);
}

bool client_name_read(const char *name, uint64_t *ret)
{
    char again[CLIENT_NAME_SIZE];

    if (name[0] != '@')
        return false;
    *ret = strtoull(name + 1, NULL, 10);
    client_name_write(again, *ret);
    return *ret > 0 && *ret <= CLIENT_NUMBER_MAX && strcmp(name, again) == 0;
}

int attachment_refuse(struct attachment *attachment, uint64_t cookie, int error, const char *reason)
{
    delivery_refuse(attachment->actor, cookie, error, reason);
    return 0;
}

int attachment_refuse_errno(struct attachment *attachment, uint64_t cookie, int r)
{
    return attachment_refuse(attachment, cookie, -r, strerror(-r));
}

static int attachment_on_lookup(struct attachment *attachment, const struct ring_record *record)
{
    struct protocol_lookup lookup;
    struct protocol_found found;
    char name[CONFIG_GROUP_NAME_MAX + 1] = "";
    uint8_t body[sizeof(found)];
    struct group *group;
    int r = protocol_get_lookup(record->body, record->size, &lookup);

    if (r < 0)
        return r;
    if (lookup.name_size < sizeof(name))
        memcpy(name, lookup.name, lookup.name_size);
    group = registry_find(attachment->context->registry, name);
    if (!group)
        return attachment_refuse(attachment, lookup.cookie, ENOENT, "no such group");
    if (group->config->type != CONFIG_ACTOR)
        return attachment_refuse(attachment, lookup.cookie, EOPNOTSUPP,
                                 "a service takes no jobs (Type=actor does)");
    found = (struct protocol_found){.cookie = lookup.cookie, .group = group->reference};
    r = protocol_put_found(body, sizeof(body), &found);
    delivery_answer(attachment->actor, PROTOCOL_FOUND, body, (uint32_t)r);
    return 0;
}

/* Cancels a durable job: answered when that is on disk. */
static int cancel_durable(struct attachment *attachment, struct job *job, uint64_t cookie,
                          enum protocol_cause cause)
{
    struct job_waiter *waiter = job_waiter_new(attachment->context->jobs, job);
    const bool again = job_cancel_requested(job);
    int r;

    if (!waiter)
        return attachment_refuse_errno(attachment, cookie, -ENOMEM);
    waiter->cookie = cookie;
    attachment_wait(attachment, waiter, again ? WAIT_FOR_CANCELLED_AGAIN : WAIT_FOR_CANCELLED);
    r = cell_cancel(job, cause, attachment->uid);
    if (r == CELL_CANCEL_E_WAIT || r == CELL_CANCEL_E_ALREADY_WAIT)
        durable_job_await(job, waiter);
    else if (again) {
        list_unlink(&waiter->link); /* it is called once */
        waiter->changed(waiter, job);
    }
    return 0;
}

int attachment_refuse_second_cancel(struct attachment *attachment, uint64_t cookie)
{
    return attachment_refuse(attachment, cookie, EALREADY, "cancellation already requested");
}

bool attachment_may_cancel(const struct attachment *attachment, const struct job *job)
{
    return !attachment->actor->restricted ||
           (job->submitter_uid == attachment->uid && job->group &&
            attachment->may_submit(attachment->userdata, job->group));
}

static int end_job(struct attachment *attachment, uint64_t cookie, struct job *job,
                   enum protocol_cause cause)
{
    if (!job)
        return attachment_refuse(attachment, cookie, ESRCH, "no such job");
    if (!attachment_may_cancel(attachment, job))
        return attachment_refuse(attachment, cookie, EPERM, "not permitted");
    if (job_ended(job))
        return attachment_refuse(attachment, cookie, ESRCH, "the job has ended");
    if (cause == PROTOCOL_CAUSE_WITHDRAWN && job->state == JOB_RUNNING)
        return attachment_refuse(attachment, cookie, EBUSY, "a worker has the job");
    if (job->record)
        return cancel_durable(attachment, job, cookie, cause);
    if (job_cancel_requested(job))
        return attachment_refuse_second_cancel(attachment, cookie);
    (void)attachment_answer_accepted(attachment, cookie, job, false);
    (void)cell_cancel(job, cause, attachment->uid);
    return 0;
}

int attachment_cancel_job(struct attachment *attachment, uint64_t cookie, struct job *job)
{
    return end_job(attachment, cookie, job, PROTOCOL_CAUSE_REQUESTED);
}

int attachment_withdraw_job(struct attachment *attachment, uint64_t cookie, struct job *job)
{
    return end_job(attachment, cookie, job, PROTOCOL_CAUSE_WITHDRAWN);
}

/* A CANCEL or a WITHDRAW. */
static int attachment_on_cancel(struct attachment *attachment, const struct ring_record *record)
{
    struct protocol_by_id cancel;
    int r = protocol_get_by_id(record->body, record->size, &cancel);

    if (r < 0)
        return r;
    return attachment_find_job(
        attachment, &cancel, record->kind == PROTOCOL_CANCEL ? WAIT_FOR_CANCEL : WAIT_FOR_WITHDRAW);
}

static int attachment_handle(struct attachment *attachment, const struct ring_record *record)
{
    if (delivery_must_answer_first(attachment->actor))
        return ENDPOINT_E_FULL;
    switch (record->kind) {
    case PROTOCOL_LOOKUP:
        return attachment_on_lookup(attachment, record);
    case PROTOCOL_SUBMIT:
        return attachment_on_submit(attachment, record);
    case PROTOCOL_CANCEL:
    case PROTOCOL_WITHDRAW:
        return attachment_on_cancel(attachment, record);
    case PROTOCOL_WAIT:
        return attachment_on_watch(attachment, record);
    default:
        return actor_request_on_record(attachment->actor, record);
    }
}

/* Reports about messages have no answer, so they need not wait until answers are sent. */
static int attachment_on_report(struct endpoint *endpoint, const struct ring_record *record)
{
    struct attachment *attachment = attachment_of(endpoint, endpoint);

    return actor_request_on_record(attachment->actor, record);
}

/* Whether the job may belong to a SUBMIT that waits before this record. */
static bool attachment_may_be_waiting(const struct attachment *attachment,
                                      const struct ring_record *record)
{
    struct protocol_by_id cancel;

    return attachment->named_waits &&
           protocol_get_by_id(record->body, record->size, &cancel) == 0 &&
           !job_by_id(attachment->context->jobs, &cancel.id);
}

static bool attachment_is_urgent(uint16_t kind)
{
    return kind == PROTOCOL_CANCEL || kind == PROTOCOL_WITHDRAW;
}

/* Looks behind a SUBMIT that waits for room, as a CANCEL or WITHDRAW may make room. */
static int attachment_look(struct endpoint *endpoint, const struct ring_record *record, bool first)
{
    struct attachment *attachment = attachment_of(endpoint, endpoint);
    struct protocol_submit submit;

    if (first)
        attachment->named_waits = false;
    if (record->kind == PROTOCOL_SUBMIT) {
        if (protocol_get_submit(record->body, record->size, &submit) == 0 && submit.name_size > 0)
            attachment->named_waits = true;
        return 0;
    }
    if (!attachment_is_urgent(record->kind))
        return 0;
    if (delivery_must_answer_first(attachment->actor) || attachment->room.row ||
        attachment_may_be_waiting(attachment, record))
        return ENDPOINT_E_FULL;
    return attachment_on_cancel(attachment, record);
}

static int attachment_on_record(struct endpoint *endpoint, const struct ring_record *record)
{
    struct attachment *attachment = attachment_of(endpoint, endpoint);
    const struct cell_waiter *room = &attachment->room;
    int r = attachment_handle(attachment, record);
    const bool looks = r == ENDPOINT_E_FULL && (room->row || room->search);

    if ((r != ENDPOINT_E_FULL || attachment->finish) &&
        (room->deadline != 0 || attachment->has_blob))
        attachment_forget_submit(attachment);
    else if (room->called && !looks)
        cell_waiter_stop(&attachment->room); /* the queue has room, but the answer has none */
    return r;
}

static void attachment_on_space(struct endpoint *endpoint)
{
    struct attachment *attachment = attachment_of(endpoint, endpoint);

    delivery_on_space(attachment->actor);
    if (!delivery_must_answer_first(attachment->actor))
        endpoint_resume(endpoint);
}

static void attachment_on_drainable(struct endpoint *endpoint)
{
    task_queue(attachment_of(endpoint, endpoint)->finish);
}

static void attachment_on_consumed(struct endpoint *endpoint, const struct ring_record *record,
                                   uint32_t cursor)
{
    delivery_on_consumed(attachment_of(endpoint, endpoint)->actor, record, cursor);
}

static void attachment_on_broken(struct endpoint *endpoint, const char *what)
{
    struct attachment *attachment = attachment_of(endpoint, endpoint);

    attachment->broken(attachment->userdata, what);
}

const struct endpoint_handler ATTACHMENT_ENDPOINT = {
    .record = attachment_on_record,
    .report = attachment_on_report,
    .look = attachment_look,
    .is_urgent = attachment_is_urgent,
    .space = attachment_on_space,
    .drainable = attachment_on_drainable,
    .consumed = attachment_on_consumed,
    .broken = attachment_on_broken,
};

static const struct actor_class CLIENT_ACTOR = {
    .kind = ACTOR_CLIENT,
    .deliver = delivery_to_inbox,
    .feed = delivery_feed_inbox,
};

int attachment_new_actor(struct attachment *attachment, const char *name)
{
    const struct actor_options options = {
        .class = &CLIENT_ACTOR, .owner = attachment, .name = name};
    int r = actor_new(&attachment->actor, attachment->context->messages, &options);

    if (r < 0)
        return r;
    delivery_attach(attachment->actor, &attachment->endpoint);
    delivery_set_up(attachment->actor, true);
    return actor_publish(attachment->actor);
}

int attachment_allocate(struct attachment **ret, const struct group_context *context,
                        const struct attachment_options *client)
{
    struct attachment *attachment = calloc(1, sizeof(*attachment));

    if (!attachment)
        return -ENOMEM;
    attachment->context = context;
    attachment->uid = client->uid;
    attachment->connection = client->connection;
    attachment->may_read = client->may_read;
    attachment->may_submit = client->may_submit;
    attachment->broken = client->broken;
    attachment->userdata = client->userdata;
    attachment->passing = client->passing;
    list_init(&attachment->waiting);
    list_init(&attachment->searches);
    cell_waiter_init(&attachment->room, attachment_on_turn);
    attachment->blob = (struct payload)PAYLOAD_NULL;
    *ret = attachment;
    return 0;
}

int attachment_new(struct attachment **ret, const struct group_context *context,
                   const struct attachment_options *client, struct endpoint_fds *ret_fds)
{
    const struct endpoint_options options = {
        .ring_size = ATTACHMENT_RING,
        .inline_max = ATTACHMENT_INLINE,
        .spin_usec = client->spin_usec,
        .blobs = client->blobs,
    };
    struct attachment *attachment;
    char name[CLIENT_NAME_SIZE];
    int r = attachment_allocate(&attachment, context, client);

    if (r < 0)
        return r;
    r = endpoint_init(&attachment->endpoint, context->loop, &options, &ATTACHMENT_ENDPOINT,
                      ret_fds);
    if (r < 0) {
        free(attachment);
        return r;
    }
    client_name_write(name, ++*context->messages->last_client);
    r = attachment_new_actor(attachment, name);
    if (r == 0)
        r = endpoint_open(&attachment->endpoint);
    if (r < 0) {
        endpoint_forget_fds(&attachment->endpoint, ret_fds);
        (void)attachment_free(attachment);
        return r;
    }
    *ret = attachment;
    return 0;
}

void attachment_flush(struct attachment *attachment)
{
    endpoint_flush(&attachment->endpoint);
}

const char *attachment_address(const struct attachment *attachment)
{
    return attachment->actor->name;
}

void attachment_sent(struct attachment *attachment, struct endpoint_fds *fds)
{
    if (!attachment->passing)
        attachment_hold(attachment);
    endpoint_forget_fds(&attachment->endpoint, fds);
}

void attachment_set_may_change(struct attachment *attachment, bool may_change)
{
    attachment->actor->restricted = !may_change;
}

bool attachment_finish(struct attachment *attachment, struct task *again)
{
    if (!attachment->finish && (!attachment_drop_waiters(attachment, DROPPED_PER_TURN) ||
                                !delivery_drop_answers(attachment->actor, DROPPED_PER_TURN))) {
        task_queue(again);
        return false;
    }
    if (!attachment->finish) {
        attachment->finish = again;
        attachment_drop_searches(attachment, false);
        (void)attachment_drop_waiters(attachment, SIZE_MAX); /* of the searches */
        attachment_forget_submit(attachment);
        endpoint_begin_drain(&attachment->endpoint);
    }
    if (endpoint_catch_up(&attachment->endpoint)) {
        task_queue(again);
        return false;
    }
    return (attachment->endpoint.dead || !endpoint_awaits_blob(&attachment->endpoint)) &&
           attachment->n_searches == 0;
}

struct attachment *attachment_free(struct attachment *attachment)
{
    if (!attachment)
        return NULL;
    attachment_drop_holding(attachment);
    attachment_drop_searches(attachment, true);
    (void)attachment_drop_waiters(attachment, SIZE_MAX);
    attachment_forget_submit(attachment);
    if (attachment->actor)
        actor_end(attachment->actor, "the client has gone away");
    endpoint_deinit(&attachment->endpoint);
    free(attachment);
    return NULL;
}
