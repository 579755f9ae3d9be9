/* SPDX-License-Identifier: MIT */
/* Sends dead letters again: messages to their recipient with their sender, dead jobs as new jobs. A
 * letter that cannot be sent stays. */

#include "supervisor/control/actors/actors.h"
#include "supervisor/control/control-context.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/router.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(struct requeue *requeue, const char *problem)
{
    requeue->n_failed++;
    (void)snprintf(requeue->problem, sizeof(requeue->problem), "%s", problem);
}

/* The recipient itself if it still exists, else the actor at its address; NULL if there is none. */
static const struct actor *find_recipient(struct control_context *context,
                                          const struct dead_letter *letter, const char *to)
{
    const struct actor *actor = NULL;

    if (!to)
        actor = actor_get(context->messages, letter->recipient_ref);
    if (!to)
        to = letter->recipient;
    return actor || !to ? actor : actor_by_address(context->messages, to);
}

static void requeue_message(struct requeue *requeue, struct dead_letter *letter)
{
    struct control_context *context = requeue->context;
    const struct actor *actor = find_recipient(context, letter, requeue->to);
    struct payload payload = PAYLOAD_NULL;
    int r;

    if (!actor) {
        fail(requeue, "there is no such actor (any more); it can be sent to another one");
        return;
    }
    dead_letter_take(&context->messages->dead_letters, letter);
    payload_move(&payload, &letter->payload);
    r = router_tell(context->messages, &(struct router_message){
                                           .sender = letter->sender_ref,
                                           .to = actor->reference,
                                           .topic = letter->topic,
                                           .payload = &payload,
                                       });
    if (r == -ENOMEM) {
        payload_move(&letter->payload, &payload);
        dead_letter_put(&context->messages->dead_letters, letter);
        fail(requeue, control_routing_text(r));
        return;
    }
    /* A refused message has become a new dead letter. */
    dead_letter_free(letter);
    if (r == 0)
        requeue->n_requeued++;
    else
        fail(requeue, control_routing_text(r));
}

/* A dead job whose new job is being written. */
struct pending {
    struct list link;        /* in the requeue, or in no list: its client has gone */
    struct requeue *requeue; /* NULL = its client has gone */
    struct control_context *context;
    struct dead_letter *letter;
};

static void end_letter(struct dead_letter *letter, bool removed)
{
    if (removed)
        letter->row = 0;
    dead_letter_free(letter);
}

static void fail_job(struct requeue *requeue, int r)
{
    const struct refusal *refusal = refusal_of(r);

    fail(requeue, refusal ? refusal->text : strerror(-r));
}

static void settle(struct requeue *requeue, struct pending *pending, int refusal)
{
    list_unlink(&pending->link);
    if (refusal != 0)
        fail_job(requeue, refusal);
    else
        requeue->n_requeued++;
    if (!requeue_is_pending(requeue) && requeue->settled)
        requeue->settled(requeue);
}

/* The new job is on disk, or could not be written. */
static void on_written(struct job_waiter *waiter, struct job *job)
{
    struct pending *pending = waiter->owner;
    struct control_context *context = pending->context;

    job_waiter_free(context->jobs, waiter);
    if (job->refusal != 0)
        dead_letter_put(&context->messages->dead_letters, pending->letter);
    else
        end_letter(pending->letter, true);
    if (pending->requeue)
        settle(pending->requeue, pending, job->refusal);
    free(pending);
}

/* `pending` NULL: no call waits for the job to be written. */
static int submit(struct group *group, struct dead_letter *letter, struct pending *pending,
                  struct job **ret)
{
    static const struct job_options none = JOB_OPTIONS_DEFAULT;
    struct payload payload = PAYLOAD_NULL;
    struct cell_request wanted = {
        .name = "",
        .key = letter->topic.key,
        .key_size = letter->topic.key_size,
        .keep_result = true,
        .submitter_uid = letter->submitter_uid,
        /* It may have been read from a file. */
        .options = job_options_check(&letter->options, 0, 0) ? none : letter->options,
        .data = payload_data(&letter->payload),
        .size = letter->payload.size,
        .changed = pending ? on_written : NULL,
        .owner = pending,
        .replaces = letter->row,
    };
    int r = 0;

    if (letter->payload.fd >= 0) {
        wanted.blob = &payload;
        r = payload_copy(&payload, &letter->payload);
    }
    if (r == 0)
        r = group_submit(group, &wanted, ret);
    payload_deinit(&payload);
    return r;
}

/* NULL when out of memory. */
static struct pending *pending_new(struct requeue *requeue, struct dead_letter *letter)
{
    struct pending *pending = malloc(sizeof(*pending));

    if (!pending)
        return NULL;
    *pending = (struct pending){.requeue = requeue, .context = requeue->context, .letter = letter};
    list_init(&pending->link);
    return pending;
}

static void requeue_job(struct requeue *requeue, struct dead_letter *letter)
{
    struct control_context *context = requeue->context;
    const char *to = requeue->to ? requeue->to : letter->recipient;
    struct group *group = registry_group_of(context->registry, to);
    struct pending *pending = NULL;
    struct job *job;
    int r = 0;

    if (!group || group->removal != GROUP_STAYS || group->config->type != CONFIG_ACTOR) {
        fail(requeue, "there is no such group (any more)");
        return;
    }
    if (group->config->durable && !(pending = pending_new(requeue, letter)))
        r = -ENOMEM;
    /* Taken first, so that the submission cannot evict it. */
    dead_letter_take(&context->messages->dead_letters, letter);
    if (r == 0)
        r = submit(group, letter, pending, &job);
    if (r != 0) {
        free(pending);
        dead_letter_put(&context->messages->dead_letters, letter);
        fail_job(requeue, r);
        return;
    }
    job_format_id(job, requeue->job);
    if (pending) {
        list_push_back(&requeue->pending, &pending->link);
        durable_job_await(job, job_first_waiter(job));
        return;
    }
    end_letter(letter, false);
    requeue->n_requeued++;
}

void requeue_init(struct requeue *requeue, struct control_context *context, const char *to)
{
    *requeue = (struct requeue){.context = context, .to = to};
    list_init(&requeue->pending);
}

void requeue_deinit(struct requeue *requeue)
{
    list_for_each_safe (node, &requeue->pending) {
        list_unlink(node);
        list_entry(node, struct pending, link)->requeue = NULL;
    }
}

void requeue_letter(struct requeue *requeue, struct dead_letter *letter)
{
    if (letter->payload_dropped)
        fail(requeue, "its payload was not kept: there was no room");
    else if (letter->reason == DEAD_JOB)
        requeue_job(requeue, letter);
    else
        requeue_message(requeue, letter);
}
