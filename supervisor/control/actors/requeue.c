/* SPDX-License-Identifier: MIT */
#include "supervisor/control/actors/requeue.h"

#include "supervisor/control/actors/actors.h"
#include "supervisor/control/control-context.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/router.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void fail(struct requeue_result *result, const char *problem)
{
    result->n_failed++;
    (void)snprintf(result->problem, sizeof(result->problem), "%s", problem);
}

/* The recipient itself if it still exists, else the actor at its address; NULL if there is none. */
static const struct actor *find_recipient(struct control_context *context,
                                          const struct dead_letter *letter, const char *to)
{
    const struct actor *actor = NULL;

    if (!to)
        actor = actor_get(&context->messages->actors, letter->recipient_ref);
    if (!to)
        to = letter->recipient;
    return actor || !to ? actor : actor_by_address(context->messages, to);
}

static void requeue_message(struct control_context *context, struct dead_letter *letter,
                            const char *to, struct requeue_result *result)
{
    const struct actor *actor = find_recipient(context, letter, to);
    struct payload payload = PAYLOAD_NULL;
    int r;

    if (!actor) {
        fail(result, "there is no such actor (any more); it can be sent to another one");
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
        fail(result, control_routing_text(r));
        return;
    }
    /* A refused message has become a new dead letter. */
    dead_letter_free(letter);
    if (r == 0)
        result->n_requeued++;
    else
        fail(result, control_routing_text(r));
}

static int submit(struct group *group, struct dead_letter *letter, struct job **ret)
{
    struct payload *payload = &letter->payload;
    const struct cell_request wanted = {
        .name = "",
        .key = letter->topic.key,
        .key_size = letter->topic.key_size,
        .keep_result = true,
        .submitter_uid = letter->submitter_uid,
        .options = letter->options,
        .data = payload->fd >= 0 ? NULL : payload_data(payload),
        .size = payload->size,
        .blob = payload->fd >= 0 ? payload : NULL,
    };

    return group_submit(group, &wanted, ret);
}

static void requeue_job(struct control_context *context, struct dead_letter *letter, const char *to,
                        struct requeue_result *result)
{
    struct group *group = registry_group_of(context->registry, to ? to : letter->recipient);
    const struct refusal *refusal;
    struct job *job;
    int r;

    if (!group || group->removed || group->config->type != CONFIG_ACTOR) {
        fail(result, "there is no such group (any more)");
        return;
    }
    /* Taken first, so that the submission cannot evict it. */
    dead_letter_take(&context->messages->dead_letters, letter);
    r = submit(group, letter, &job);
    if (r != 0) {
        refusal = refusal_of(r);
        dead_letter_put(&context->messages->dead_letters, letter);
        fail(result, refusal ? refusal->text : strerror(-r));
        return;
    }
    protocol_id_format(&job->id, result->job);
    dead_letter_free(letter);
    result->n_requeued++;
}

void requeue_letter(struct control_context *context, struct dead_letter *letter, const char *to,
                    struct requeue_result *result)
{
    if (letter->payload_dropped)
        fail(result, "its payload was not kept, for want of room");
    else if (letter->reason == DEAD_JOB)
        requeue_job(context, letter, to, result);
    else
        requeue_message(context, letter, to, result);
}
