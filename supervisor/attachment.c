/* SPDX-License-Identifier: MIT */
#include "attachment.h"

#include "../shared/cleanup.h"
#include "../shared/protocol.h"
#include "cell.h"
#include "context.h"
#include "delivery.h"
#include "group.h"
#include "router.h"
#include "talk.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTACHMENT_RING   (UINT32_C(1) << 20)
#define ATTACHMENT_INLINE (UINT32_C(32) << 10)
/* Ends that one client may wait for at a time. */
#define ATTACHMENT_WAITERS_MAX 65536u
/* Fields of a DONE record beside reason and payload; generous. */
#define DONE_RECORD_FIXED 256u

static const char RESULT_LOST[] =
    "its result could not be handed over: out of memory or descriptors";

#define attachment_of(pointer, member) list_entry(pointer, struct attachment, member)

struct attachment {
    struct mailbox mailbox;
    struct context *context;
    struct actor *actor;
    bool may_change;
    unsigned n_waiters;  /* in the two lists */
    struct list waiting; /* waiters on live jobs, struct job_waiter.owner_link */
    struct list
        owed; /* waiters on ended jobs whose end found no room; each holds a job reference */
    struct cell_waiter room; /* for the job whose record is next in the ring */
    struct parcel blob;      /* that job's, once fetched */
    uint64_t blob_serial;
    void (*broken)(void *userdata, const char *what);
    void *userdata;
};

/* ---- answers ---- */

typedef int (*put_fn)(void *body, uint32_t size, const void *message);

static int attachment_answer(struct attachment *attachment, uint16_t kind, put_fn put,
                             const void *message)
{
    void *body;
    int r;

    r = mailbox_reserve(&attachment->mailbox, PROTOCOL_BODY_MAX, &body);
    if (r != 0)
        return r;
    r = put(body, PROTOCOL_BODY_MAX, message);
    if (r < 0)
        return r;
    mailbox_commit(&attachment->mailbox, kind, (uint32_t)r);
    return 0;
}

static int put_found(void *body, uint32_t size, const void *message)
{
    return protocol_put_found(body, size, message);
}

static int put_accepted(void *body, uint32_t size, const void *message)
{
    return protocol_put_accepted(body, size, message);
}

static int put_refused(void *body, uint32_t size, const void *message)
{
    return protocol_put_refused(body, size, message);
}

static int attachment_refuse(struct attachment *attachment, uint64_t cookie, int error,
                             const char *reason)
{
    const struct protocol_refused refused = {
        .cookie = cookie,
        .error = (uint32_t)error,
        .reason = reason,
        .reason_size = (uint32_t)strlen(reason),
    };

    return attachment_answer(attachment, PROTOCOL_REFUSED, put_refused, &refused);
}

static int attachment_accept(struct attachment *attachment, uint64_t cookie,
                             const struct protocol_id *id)
{
    const struct protocol_accepted accepted = {.cookie = cookie, .id = *id};

    return attachment_answer(attachment, PROTOCOL_ACCEPTED, put_accepted, &accepted);
}

static enum protocol_end end_of(const struct job *job)
{
    switch (job->state) {
    case JOB_SUCCEEDED:
        return PROTOCOL_END_SUCCEEDED;
    case JOB_FAILED:
        return PROTOCOL_END_FAILED;
    case JOB_CANCELLED:
        return PROTOCOL_END_CANCELLED;
    default:
        return PROTOCOL_END_DEAD;
    }
}

/* 0, MAILBOX_E_FULL, or -errno. */
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
    r = mailbox_reserve(&attachment->mailbox, room, &body);
    if (r != 0)
        return r;
    r = mailbox_give(&attachment->mailbox, &job->result, &done.payload);
    if (r == MAILBOX_E_FULL)
        return r;
    if (r < 0) {
        /* Out of descriptors or memory for a large result: the end itself must be told all the
         * same. */
        done.payload = (struct payload_wire){.form = PAYLOAD_INLINE};
        done.reason = RESULT_LOST;
        done.reason_size = sizeof(RESULT_LOST) - 1;
    }
    r = protocol_put_done(body, room, &done);
    if (r < 0)
        return r;
    mailbox_commit_of_many(&attachment->mailbox, PROTOCOL_DONE, (uint32_t)r, attachment->n_waiters);
    return 0;
}

/* ---- waiting for ends ---- */

static void waiter_release(struct job_waiter *waiter, struct job *job)
{
    ((struct attachment *)waiter->owner)->n_waiters--;
    list_unlink(&waiter->owner_link);
    if (waiter != &job->submitter)
        free(waiter);
}

static void attachment_on_change(struct job_waiter *waiter, struct job *job)
{
    struct attachment *attachment = waiter->owner;
    int r;

    if (!job_ended(job))
        return;
    r = list_empty(&attachment->owed) ? attachment_send_done(attachment, waiter->cookie, job)
                                      : MAILBOX_E_FULL;
    if (r != MAILBOX_E_FULL) {
        /* Anything else than success means that the mailbox is broken: the client is on its way
         * out. */
        waiter_release(waiter, job);
        return;
    }
    list_unlink(&waiter->owner_link);
    list_push_back(&attachment->owed, &waiter->owner_link);
    (void)job_ref(job);
}

/* A client that does not fetch its answers is not listened to. */
static void attachment_on_space(struct mailbox *mailbox)
{
    struct attachment *attachment = attachment_of(mailbox, mailbox);
    struct list *node;

    delivery_on_space(attachment->actor);
    while ((node = list_first(&attachment->owed))) {
        struct job_waiter *waiter = list_entry(node, struct job_waiter, owner_link);
        struct job *job = waiter->job;
        int r = attachment_send_done(attachment, waiter->cookie, job);
        if (r == MAILBOX_E_FULL)
            return;
        waiter_release(waiter, job);
        job_unref(&attachment->context->jobs, job);
    }
    mailbox_resume(mailbox);
}

/* ---- requests ---- */

static int attachment_on_lookup(struct attachment *attachment, const struct ring_record *record)
{
    struct protocol_lookup lookup;
    struct protocol_found found;
    char name[CONFIG_GROUP_NAME_MAX + 1] = "";
    struct group *group;
    int r;

    r = protocol_get_lookup(record->body, record->size, &lookup);
    if (r < 0)
        return r;
    if (lookup.name_size < sizeof(name))
        memcpy(name, lookup.name, lookup.name_size);
    group = registry_find(&attachment->context->registry, name);
    if (!group)
        return attachment_refuse(attachment, lookup.cookie, ENOENT, "no such group");
    if (group->config->type != CONFIG_ACTOR)
        return attachment_refuse(attachment, lookup.cookie, EOPNOTSUPP,
                                 "a service takes no jobs (Type=actor does)");
    found = (struct protocol_found){.cookie = lookup.cookie, .group = group->reference};
    return attachment_answer(attachment, PROTOCOL_FOUND, put_found, &found);
}

static int attachment_refuse_submit(struct attachment *attachment, uint64_t cookie, int r)
{
    switch (r) {
    case CELL_E_BUSY:
        return attachment_refuse(attachment, cookie, EBUSY,
                                 "the queue is full (QueueMax=, QueueMemoryMax=)");
    case CELL_E_TOO_LARGE:
        return attachment_refuse(attachment, cookie, EMSGSIZE,
                                 "the payload is above QueueMemoryMax= of the group");
    case CELL_E_EXISTS:
        return attachment_refuse(attachment, cookie, EEXIST, "a job with this id exists");
    case CELL_E_BAD_ID:
        return attachment_refuse(attachment, cookie, EINVAL,
                                 "malformed id: 1 to 64 characters of A-Z a-z 0-9 . _ : @ -");
    case CELL_E_NO_KEY:
        return attachment_refuse(
            attachment, cookie, EINVAL,
            "the group has a cell for each key (Cells=by-key): a key is needed");
    case CELL_E_BAD_KEY:
        return attachment_refuse(
            attachment, cookie, EINVAL,
            "malformed key: with Cells=by-key 1 to 64 characters of A-Z a-z 0-9 . _ : @ -");
    case CELL_E_TOO_MANY:
        return attachment_refuse(attachment, cookie, ENOSPC,
                                 "no new cell for this key: the group has as many as CellsMax=");
    case CELL_E_STOPPING:
        return attachment_refuse(attachment, cookie, ESHUTDOWN, "no new jobs: it is stopping");
    default:
        return attachment_refuse(attachment, cookie, -r, strerror(-r));
    }
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
    if (submit->backoff_min != PROTOCOL_DEFAULT_USEC &&
        submit->backoff_max != PROTOCOL_DEFAULT_USEC && submit->backoff_min > submit->backoff_max)
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
        .max_retries = submit->max_retries,
        .timeout = submit->timeout,
        .backoff_min = submit->backoff_min,
        .backoff_max = submit->backoff_max,
        .priority = submit->priority,
        .delay = submit->delay,
        .at = submit->at,
        .wait = submit->wait,
        .waiter = &attachment->room,
        .data = submit->payload.data,
        .size = submit->payload.size,
        .blob_fd = attachment->blob.fd,
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

/* The next record in the ring has been answered: nothing is kept for it any more. */
static void attachment_forget_submit(struct attachment *attachment)
{
    cell_waiter_reset(&attachment->room);
    parcel_deinit(&attachment->blob);
}

/* The record that waits is read again. */
static void attachment_on_turn(struct cell_waiter *waiter)
{
    mailbox_resume(&attachment_of(waiter, room)->mailbox);
}

/*
 * A blob is fetched also for a job that is refused: the next one counts on its turn. And only once
 * for a record that is read several times, while its job waits for room.
 */
static int attachment_take_blob(struct attachment *attachment, const struct protocol_submit *submit)
{
    int r;

    if (attachment->blob.fd >= 0)
        return submit->payload.form == PAYLOAD_BLOB &&
                       submit->payload.serial == attachment->blob_serial &&
                       submit->payload.size == attachment->blob.size
                   ? 0
                   : -EBADMSG;
    if (submit->payload.form != PAYLOAD_BLOB)
        return 0;
    r = mailbox_take(&attachment->mailbox, &submit->payload, &attachment->blob);
    attachment->blob_serial = submit->payload.serial;
    return r;
}

static int attachment_on_submit(struct attachment *attachment, const struct ring_record *record)
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
    r = mailbox_reserve(&attachment->mailbox, PROTOCOL_BODY_MAX, &room);
    if (r != 0)
        return r;
    r = attachment_take_blob(attachment, &submit);
    if (r == -EMFILE || r == -ENOMEM)
        return attachment_refuse(attachment, submit.cookie, -r, strerror(-r));
    if (r < 0)
        return r;
    if (!attachment->may_change)
        return attachment_refuse(attachment, submit.cookie, EPERM, "not permitted");
    if (attachment->n_waiters >= ATTACHMENT_WAITERS_MAX)
        return attachment_refuse(attachment, submit.cookie, EBUSY, "too many jobs are waited for");
    group = registry_get(&attachment->context->registry, submit.group);
    problem = bad_option(&submit);
    if (problem)
        return attachment_refuse(attachment, submit.cookie, EINVAL, problem);
    if (!group || group->config->type != CONFIG_ACTOR)
        return attachment_refuse(attachment, submit.cookie, ENOENT, "the group is gone");
    r = attachment_submit(attachment, group, &submit, &job);
    if (r == CELL_E_WAIT)
        return MAILBOX_E_FULL;
    if (r != 0)
        return attachment_refuse_submit(attachment, submit.cookie, r);
    (void)TAKE_FD(attachment->blob.fd); /* the job's now */
    if (job->keep_result)
        return attachment_accept(attachment, submit.cookie, &job->id);
    list_push_back(&attachment->waiting, &job->submitter.owner_link);
    attachment->n_waiters++;
    return 0;
}

static int attachment_on_cancel(struct attachment *attachment, const struct ring_record *record)
{
    struct protocol_by_id cancel;
    struct job *job;
    int r;

    r = protocol_get_by_id(record->body, record->size, &cancel);
    if (r < 0)
        return r;
    if (!attachment->may_change)
        return attachment_refuse(attachment, cancel.cookie, EPERM, "not permitted");
    job = job_by_id(&attachment->context->jobs, &cancel.id);
    if (!job)
        return attachment_refuse(attachment, cancel.cookie, ESRCH, "no such job");
    if (job_ended(job))
        return attachment_refuse(attachment, cancel.cookie, ESRCH, "the job has ended");
    if (job->cancel_requested)
        return attachment_refuse(attachment, cancel.cookie, EALREADY,
                                 "cancellation already requested");
    /* Answered first: what cancelling tells this very client may take the room. */
    r = attachment_accept(attachment, cancel.cookie, &cancel.id);
    if (r == 0)
        (void)cell_cancel(job);
    return r;
}

static int attachment_on_watch(struct attachment *attachment, const struct ring_record *record)
{
    struct protocol_by_id watch;
    struct job_waiter *waiter;
    struct job *job;
    int r;

    r = protocol_get_by_id(record->body, record->size, &watch);
    if (r < 0)
        return r;
    job = job_by_id(&attachment->context->jobs, &watch.id);
    if (!job)
        return attachment_refuse(attachment, watch.cookie, ESRCH, "no such job");
    if (job_ended(job))
        return attachment_send_done(attachment, watch.cookie, job);
    if (attachment->n_waiters >= ATTACHMENT_WAITERS_MAX)
        return attachment_refuse(attachment, watch.cookie, EBUSY, "too many jobs are waited for");
    waiter = malloc(sizeof(*waiter));
    if (!waiter)
        return attachment_refuse(attachment, watch.cookie, ENOMEM, "out of memory");
    *waiter = (struct job_waiter){
        .changed = attachment_on_change, .owner = attachment, .cookie = watch.cookie};
    list_init(&waiter->link);
    list_push_back(&attachment->waiting, &waiter->owner_link);
    attachment->n_waiters++;
    job_add_waiter(job, waiter);
    return 0;
}

static int attachment_handle(struct attachment *attachment, const struct ring_record *record)
{
    if (!list_empty(&attachment->owed))
        return MAILBOX_E_FULL;
    switch (record->kind) {
    case PROTOCOL_LOOKUP:
        return attachment_on_lookup(attachment, record);
    case PROTOCOL_SUBMIT:
        return attachment_on_submit(attachment, record);
    case PROTOCOL_CANCEL:
        return attachment_on_cancel(attachment, record);
    case PROTOCOL_WATCH:
        return attachment_on_watch(attachment, record);
    default:
        return talk_on_record(attachment->actor, record, attachment->may_change);
    }
}

static int attachment_on_record(struct mailbox *mailbox, const struct ring_record *record)
{
    struct attachment *attachment = attachment_of(mailbox, mailbox);
    int r = attachment_handle(attachment, record);

    if (r != MAILBOX_E_FULL && (attachment->room.deadline != 0 || attachment->blob.fd >= 0))
        attachment_forget_submit(attachment);
    else if (attachment->room.called)
        cell_waiter_stop(&attachment->room); /* called, but what it is told would have no room */
    return r;
}

static void attachment_on_consumed(struct mailbox *mailbox, const struct ring_record *record,
                                   uint32_t cursor)
{
    delivery_on_consumed(attachment_of(mailbox, mailbox)->actor, record, cursor);
}

static void attachment_on_broken(struct mailbox *mailbox, const char *what)
{
    struct attachment *attachment = attachment_of(mailbox, mailbox);

    attachment->broken(attachment->userdata, what);
}

static const struct mailbox_handler ATTACHMENT_MAILBOX = {
    .record = attachment_on_record,
    .space = attachment_on_space,
    .consumed = attachment_on_consumed,
    .broken = attachment_on_broken,
};

/* ---- life ---- */

static int attachment_new_actor(struct attachment *attachment)
{
    struct actor_table *table = &attachment->context->actors;
    char name[24];
    int r;

    (void)snprintf(name, sizeof(name), "@%llu", (unsigned long long)++table->last_client);
    r = actor_new(&attachment->actor, attachment->context, ACTOR_CLIENT, name);
    if (r < 0)
        return r;
    attachment->actor->client = attachment;
    delivery_attach(attachment->actor, &attachment->mailbox);
    delivery_set_up(attachment->actor, true);
    return actor_publish(attachment->actor);
}

int attachment_new(struct attachment **ret, struct context *context, bool may_change,
                   void (*broken)(void *userdata, const char *what), void *userdata,
                   struct mailbox_fds *ret_fds)
{
    const struct mailbox_options options = {
        .ring_size = ATTACHMENT_RING,
        .inline_max = ATTACHMENT_INLINE,
        .spin_usec = (uint32_t)context->config->spin,
    };
    struct attachment *attachment = calloc(1, sizeof(*attachment));
    int r;

    if (!attachment)
        return -ENOMEM;
    attachment->context = context;
    attachment->may_change = may_change;
    attachment->broken = broken;
    attachment->userdata = userdata;
    list_init(&attachment->waiting);
    list_init(&attachment->owed);
    cell_waiter_init(&attachment->room, attachment_on_turn);
    attachment->blob = (struct parcel)PARCEL_NULL;
    r = mailbox_init(&attachment->mailbox, context->loop, &options, &ATTACHMENT_MAILBOX, ret_fds);
    if (r < 0) {
        free(attachment);
        return r;
    }
    r = attachment_new_actor(attachment);
    if (r == 0)
        r = mailbox_open(&attachment->mailbox);
    if (r < 0) {
        mailbox_forget_fds(&attachment->mailbox, ret_fds);
        (void)attachment_free(attachment);
        return r;
    }
    *ret = attachment;
    return 0;
}

void attachment_sent(struct attachment *attachment, struct mailbox_fds *fds)
{
    mailbox_forget_fds(&attachment->mailbox, fds);
}

struct attachment *attachment_free(struct attachment *attachment)
{
    struct list *node;

    if (!attachment)
        return NULL;
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
        job_unref(&attachment->context->jobs, job);
    }
    attachment_forget_submit(attachment);
    if (attachment->actor)
        router_remove(attachment->actor, "the client has gone away");
    mailbox_deinit(&attachment->mailbox);
    free(attachment);
    return NULL;
}
