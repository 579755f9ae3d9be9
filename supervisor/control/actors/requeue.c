/* SPDX-License-Identifier: MIT */
#include "supervisor/control/actors/requeue.h"

#include "shared/base/cleanup.h"
#include "supervisor/control/control-context.h"
#include "supervisor/group/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/group/refusal.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/router.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void fail(struct requeue_result *result, const char *problem)
{
    result->n_failed++;
    (void)snprintf(result->problem, sizeof(result->problem), "%s", problem);
}

/* ---- messages ---- */

/* The very actor if it is still there, else whoever has its address now. NULL = nobody. */
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

static const char *refusal(int r)
{
    switch (r) {
    case ROUTER_E_GONE:
        return "the recipient is gone";
    case ROUTER_E_FULL:
        return "the recipient's mailbox is full";
    case ROUTER_E_NO_MATCH:
        return "no subscription of the exchange fits it";
    case ROUTER_E_NO_KEY:
        return "the group has Cells=by-key, and it has no key that could name a cell";
    case ROUTER_E_CELLS:
        return "the group has as many cells as it may have (CellsMax=)";
    case ROUTER_E_MEMORY:
        return "the supervisor is out of memory or descriptors";
    default:
        return strerror(r < 0 ? -r : EIO);
    }
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
        fail(result, refusal(r));
        return;
    }
    /* What is refused has become a dead letter again, a new one. */
    dead_letter_free(letter);
    if (r == 0)
        result->n_requeued++;
    else
        fail(result, refusal(r));
}

/* ---- jobs ---- */

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

    return group_submit(group, &wanted, NULL, NULL, 0, ret);
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
    /* Before the submission: no bound is to evict it meanwhile. */
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
