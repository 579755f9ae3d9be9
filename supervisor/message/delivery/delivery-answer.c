/* SPDX-License-Identifier: MIT */

/* Answers: written into the inbox, or waiting in the mailbox as whole records. */

#include "shared/base/fault.h"
#include "supervisor/message/delivery/delivery-private.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <string.h>

/* Upper bound of a DONE record's other fields, without reason and payload. */
#define DONE_RECORD_FIXED 256u

static const char RESULT_LOST[] =
    "its result could not be handed over: out of memory or descriptors";

static void lose_result(struct protocol_done *done)
{
    done->payload = (struct payload_wire){.form = PAYLOAD_INLINE};
    done->reason = RESULT_LOST;
    done->reason_size = sizeof(RESULT_LOST) - 1;
}

int delivery_write_end(struct endpoint *endpoint, struct protocol_done *done,
                       const struct payload *result, unsigned more)
{
    uint32_t room = DONE_RECORD_FIXED + done->reason_size + (uint32_t)sizeof(RESULT_LOST);
    void *body;
    int r;

    if (result->fd < 0 && result->size <= endpoint->channel.mine.header->inline_max)
        room += (uint32_t)result->size;
    r = endpoint_reserve(endpoint, room, &body);
    if (r != 0)
        return r;
    r = endpoint_give(endpoint, result, &done->payload);
    if (r == ENDPOINT_E_FULL)
        return r;
    if (r < 0)
        lose_result(done);
    r = protocol_put_done(body, room, done);
    if (r < 0)
        return r;
    FAULT_POINT("client.done");
    endpoint_commit_of_many(endpoint, PROTOCOL_DONE, (uint32_t)r, more);
    return 0;
}

int delivery_write_answer(struct endpoint *endpoint, uint16_t kind, const void *body, uint32_t size)
{
    void *room;
    int r = endpoint_reserve(endpoint, size, &room);

    if (r != 0)
        return r;
    memcpy(room, body, size);
    endpoint_commit(endpoint, kind, size);
    return 0;
}

/* Nobody else answers: without memory, the peer must see its end. */
static void give_up(struct actor *actor, int error)
{
    endpoint_break(actor->inbox.endpoint, error == -EDQUOT
                                              ? "answers that are not read take too much"
                                              : "cannot be answered: out of memory");
}

/* Whether an answer that had no room waits for it: a peer that is gone needs none. */
static bool waits(const struct actor *actor, int r)
{
    return r == ENDPOINT_E_FULL && !actor->inbox.endpoint->draining;
}

void delivery_answer(struct actor *actor, uint16_t kind, const void *body, uint32_t size)
{
    int r = ENDPOINT_E_FULL;

    if (list_empty(&actor->mailbox.answers))
        r = delivery_write_answer(actor->inbox.endpoint, kind, body, size);
    if (waits(actor, r) && actor_answer_record(actor, kind, body, (int)size) < 0)
        give_up(actor, -ENOMEM);
}

void delivery_refuse(struct actor *actor, uint64_t cookie, int error, const char *reason)
{
    const struct protocol_refused refused = {.cookie = cookie,
                                             .error = (uint32_t)error,
                                             .reason = reason,
                                             .reason_size = (uint32_t)strlen(reason)};
    uint8_t body[PROTOCOL_BODY_MAX];

    delivery_answer(actor, PROTOCOL_REFUSED, body,
                    (uint32_t)protocol_put_refused(body, sizeof(body), &refused));
}

/* Returns 0, -ENOMEM, or -EDQUOT: the peer's user has too many answers that wait. */
static int queue_end(struct actor *actor, struct protocol_done *done, const struct payload *result)
{
    uint8_t body[PROTOCOL_BODY_MAX];
    struct payload copy = PAYLOAD_NULL;
    struct envelope *envelope;
    int size;

    if (result->fd < 0 && !blob_share_has_room(actor->inbox.endpoint->blobs, result->size))
        return -EDQUOT;

    done->payload = (struct payload_wire){.form = PAYLOAD_INLINE};
    if (payload_copy(&copy, result) < 0)
        lose_result(done);
    size = protocol_put_done(body, sizeof(body), done);
    envelope = size > 0 ? envelope_new_answer(PROTOCOL_DONE, body, (uint32_t)size) : NULL;
    if (!envelope) {
        payload_deinit(&copy);
        return -ENOMEM;
    }
    payload_move(&envelope->payload, &copy);
    envelope->id = message_context_next_id(actor->context);
    actor_answer(actor, envelope);
    return 0;
}

void delivery_answer_end(struct actor *actor, struct protocol_done *done,
                         const struct payload *result, unsigned more)
{
    int r = ENDPOINT_E_FULL;

    if (list_empty(&actor->mailbox.answers))
        r = delivery_write_end(actor->inbox.endpoint, done, result, more);
    if (!waits(actor, r))
        return;
    r = queue_end(actor, done, result);
    if (r < 0)
        give_up(actor, r);
}

bool delivery_hold_requests(struct actor *actor)
{
    if (actor->inbox.endpoint->draining)
        return false;
    actor->inbox.held_up = true;
    actor->inbox.owed = false;
    actor_wake(actor);
    return true;
}

bool delivery_drop_answers(struct actor *actor, size_t max)
{
    struct envelope *answer;

    for (size_t n = 0; n < max && (answer = mailbox_next(&actor->mailbox, true)); n++) {
        mailbox_take(&actor->mailbox, answer);
        envelope_free(answer);
    }
    return list_empty(&actor->mailbox.answers);
}
