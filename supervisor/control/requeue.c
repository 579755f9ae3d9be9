/* SPDX-License-Identifier: MIT */
#include "supervisor/control/requeue.h"

#include "shared/base/cleanup.h"
#include "supervisor/context.h"
#include "supervisor/group/cell.h"
#include "supervisor/group/group.h"
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
static const struct actor *find_recipient(struct context *context, const struct dead_letter *letter,
                                          const char *to)
{
    const struct actor *actor = NULL;
    uint64_t reference;

    if (!to)
        actor = actor_get(&context->actors, letter->recipient_ref);
    if (actor || (!to && !letter->recipient))
        return actor;
    if (router_find(context, to ? to : letter->recipient, &reference) != 0)
        return NULL;
    return actor_get(&context->actors, reference);
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

static void requeue_message(struct context *context, struct dead_letter *letter, const char *to,
                            struct requeue_result *result)
{
    const struct actor *actor = find_recipient(context, letter, to);
    struct payload payload = PAYLOAD_NULL;
    int r;

    if (!actor) {
        fail(result, "there is no such actor (any more); it can be sent to another one");
        return;
    }
    dead_letter_take(&context->dead_letters, letter);
    payload_move(&payload, &letter->payload);
    r = router_tell(context, &(struct router_message){
                                 .sender = letter->sender_ref,
                                 .to = actor->reference,
                                 .topic = letter->topic,
                                 .payload = &payload,
                             });
    if (r == -ENOMEM) {
        payload_move(&letter->payload, &payload);
        dead_letter_put(&context->dead_letters, letter);
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

static const char *job_refusal(int r)
{
    switch (r) {
    case CELL_E_BUSY:
        return "the group's queue is full";
    case CELL_E_STOPPING:
        return "the group is going away";
    case CELL_E_NO_KEY:
    case CELL_E_BAD_KEY:
        return "the group picks cells by keys now, and it has none that could name one";
    case CELL_E_TOO_MANY:
        return "the group has as many cells as it may have";
    default:
        return strerror(r < 0 ? -r : EIO);
    }
}

/* The group that an address is in; NULL if it is not there any more. */
static struct group *find_group(const struct context *context, const char *address)
{
    char name[CONFIG_GROUP_NAME_MAX + 1];
    const size_t size = address ? strcspn(address, "/") : 0;

    if (size == 0 || size >= sizeof(name))
        return NULL;
    memcpy(name, address, size);
    name[size] = '\0';
    return registry_find(&context->registry, name);
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

    return group_submit(group, &wanted, NULL, NULL, 0, ret);
}

static void requeue_job(struct context *context, struct dead_letter *letter, const char *to,
                        struct requeue_result *result)
{
    struct group *group = find_group(context, to ? to : letter->recipient);
    struct job *job;
    int r;

    if (!group || group->removed || group->config->type != CONFIG_ACTOR) {
        fail(result, "there is no such group (any more)");
        return;
    }
    /* Before the submission: no bound is to evict it meanwhile. */
    dead_letter_take(&context->dead_letters, letter);
    r = submit(group, letter, &job);
    if (r != 0) {
        dead_letter_put(&context->dead_letters, letter);
        fail(result, job_refusal(r));
        return;
    }
    protocol_id_format(&job->id, result->job);
    dead_letter_free(letter);
    result->n_requeued++;
}

void requeue_letter(struct context *context, struct dead_letter *letter, const char *to,
                    struct requeue_result *result)
{
    if (letter->payload_dropped)
        fail(result, "its payload was not kept, for want of room");
    else if (letter->reason == DEAD_JOB)
        requeue_job(context, letter, to, result);
    else
        requeue_message(context, letter, to, result);
}

void requeue_letters(struct context *context, const struct dead_letter_filter *filter,
                     const char *to, uint64_t after, struct requeue_result *result)
{
    struct dead_letters *letters = &context->dead_letters;
    const uint64_t last = letters->last_id;
    struct dead_letter_cursor cursor;
    struct dead_letter *letter;

    dead_letters_begin(letters, after, &cursor);
    while ((letter = dead_letter_next(letters, filter, &cursor)) && letter->id <= last) {
        const uint64_t n_before = letters->n_taken;

        if (result->n_requeued + result->n_failed == REQUEUE_MAX) {
            result->last = after;
            return;
        }
        after = letter->id;
        requeue_letter(context, letter, to, result);
        /* What was taken may have been under the cursor, and so may what it made to be evicted. */
        if (letters->n_taken != n_before)
            dead_letters_begin(letters, after, &cursor);
    }
}
