/* SPDX-License-Identifier: MIT */
/* Sends dead letters again: messages to their recipient with their sender, dead jobs as new jobs. A
 * letter that cannot be sent stays. */

#include "supervisor/control/actors/actors.h"
#include "supervisor/control/bulk.h"
#include "supervisor/control/control-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/router.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <string.h>

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

static void requeue_message(struct bulk *bulk, struct dead_letter *letter, const char *to)
{
    struct message_context *messages = bulk->context->messages;
    const struct actor *actor = find_recipient(bulk->context, letter, to);
    struct payload payload = PAYLOAD_NULL;
    int r;

    if (!actor) {
        bulk_fail_because(bulk, "there is no such actor (any more); it can be sent to another one");
        return;
    }
    dead_letter_take(&messages->dead_letters, letter);
    payload_move(&payload, &letter->payload);
    r = router_tell(messages, &(struct router_message){
                                  .sender = letter->sender_ref,
                                  .to = actor->reference,
                                  .topic = letter->topic,
                                  .payload = &payload,
                              });
    if (r == -ENOMEM) {
        payload_move(&letter->payload, &payload);
        dead_letter_put(&messages->dead_letters, letter);
        bulk_fail_because(bulk, control_routing_text(r));
        return;
    }
    /* A refused message has become a new dead letter. */
    dead_letter_free(letter);
    if (r == 0)
        bulk->n_done++;
    else
        bulk_fail_because(bulk, control_routing_text(r));
}

/* `write` NULL: no call waits for the job to be written. */
static int submit(struct group *group, struct dead_letter *letter, struct bulk_write *write,
                  struct job **ret)
{
    static const struct job_options none = JOB_OPTIONS_DEFAULT;
    struct payload payload = PAYLOAD_NULL;
    struct cell_request_rare rare = {
        .replaces = letter->row,
        .unique = {letter->unique_high, letter->unique_low},
        .on_conflict = PROTOCOL_CONFLICT_REJECT,
        .tags = letter->tags,
        .tags_size = letter->tags ? (uint32_t)strlen(letter->tags) : 0,
        .traceparent = letter->traceparent,
        .traceparent_size = letter->traceparent ? (uint32_t)strlen(letter->traceparent) : 0,
    };
    struct cell_request wanted = {
        .name = "",
        .key = letter->topic.key,
        .key_size = letter->topic.key_size,
        .keep_result = true,
        .submitter_uid = letter->submitter_uid,
        /* It may have been read from a file. */
        .options = job_options_check(&letter->options) ? none : letter->options,
        .data = payload_data(&letter->payload),
        .size = letter->payload.size,
        .changed = write ? bulk_on_written : NULL,
        .owner = write,
        .rare = &rare,
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

static void requeue_job(struct bulk *bulk, struct dead_letter *letter, const char *to,
                        char ret_job[PROTOCOL_ID_TEXT])
{
    struct dead_letters *letters = &bulk->context->messages->dead_letters;
    struct group *group = registry_group_of(bulk->context->registry, to ? to : letter->recipient);
    struct bulk_write *write = NULL;
    struct job *job;
    int r = 0;

    if (!group || group->removal != GROUP_STAYS || group->config->type != CONFIG_ACTOR) {
        bulk_fail_because(bulk, "there is no such group (any more)");
        return;
    }
    if (group->config->durable && !(write = bulk_write_new(bulk, letter)))
        r = -ENOMEM;
    /* Taken first, so that the submission cannot evict it. */
    dead_letter_take(letters, letter);
    if (r == 0)
        r = submit(group, letter, write, &job);
    if (r != 0) {
        bulk_write_free(write);
        dead_letter_put(letters, letter);
        bulk_fail(bulk, r);
        return;
    }
    job_format_id(job, ret_job);
    if (write) {
        durable_job_await(job, job_first_waiter(job));
        return;
    }
    dead_letter_free(letter);
    bulk->n_done++;
}

void requeue_letter(struct bulk *bulk, struct dead_letter *letter, const char *to,
                    char ret_job[PROTOCOL_ID_TEXT])
{
    if (letter->payload_dropped)
        bulk_fail_because(bulk, "its payload was not kept: there was no room");
    else if (letter->reason == DEAD_JOB)
        requeue_job(bulk, letter, to, ret_job);
    else
        requeue_message(bulk, letter, to);
}
