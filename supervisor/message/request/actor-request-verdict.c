/* SPDX-License-Identifier: MIT */

/* Reports of an actor about its current message: forwarded, failed, not handled, stashed. */

#include "shared/base/utf8.h"
#include "shared/protocol/protocol-actors.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/exchange/forward.h"
#include "supervisor/message/request/actor-request-private.h"
#include "supervisor/message/router.h"
#include <errno.h>
#include <string.h>

/* Gives the message the key of FORWARD. Returns 0 or -ENOMEM: the message is lost and logged. */
static int change_key(struct actor *actor, struct envelope **envelope,
                      const struct protocol_forward *forward)
{
    char key[TOPIC_KEY_MAX];
    struct topic topic = (*envelope)->topic;
    struct envelope *changed;

    if (forward->key_size > 0)
        memcpy(key, forward->key, forward->key_size);
    topic.key = forward->key ? key : NULL;
    topic.key_size = forward->key_size;
    changed = envelope_new_like(*envelope, &topic);
    if (!changed)
        undeliverable_lose(actor, (*envelope)->ask);
    envelope_free(*envelope);
    *envelope = changed;
    return changed ? 0 : -ENOMEM;
}

int actor_request_on_forward(struct actor *actor, const struct ring_record *record)
{
    struct protocol_forward forward;
    struct envelope *envelope;
    struct actor *to;
    int r = protocol_get_forward(record->body, record->size, &forward);

    if (r < 0)
        return r;
    to = actor_get(actor->context, forward.to);
    if (to && !actor->inbox.endpoint->draining && forward_must_wait_for_copies(actor, to))
        return ENDPOINT_E_FULL;
    r = delivery_claim(actor, forward.message, &envelope);
    if (r == 0 && forward.new_key)
        r = change_key(actor, &envelope, &forward);
    if (r < 0)
        return r == -ENOMEM ? 0 : r;
    envelope->flags &= ~(uint32_t)(PROTOCOL_MESSAGE_POOL | PROTOCOL_MESSAGE_REDELIVERED);
    envelope->attempt = 0;
    envelope->in_hand = false;
    (void)router_send_to(actor->context, forward.to, envelope);
    return 0;
}

/* The errno for the asker: the handler's code, if it may be one. */
static int error_of(int32_t code)
{
    return code > 0 && code < 4096 ? (int)code : EIO;
}

int actor_request_on_verdict(struct actor *actor, const struct ring_record *record)
{
    const bool erred = record->kind == PROTOCOL_ERRED;
    char bytes[PROTOCOL_REASON_MAX], text[2 * PROTOCOL_REASON_MAX + 1];
    struct protocol_verdict said;
    struct envelope *envelope;
    int r = protocol_get_verdict(record->body, record->size, &said);

    if (r < 0)
        return r;
    if (said.text_size > 0)
        memcpy(bytes, said.text, said.text_size);
    (void)utf8_escape(text, sizeof(text), bytes, said.text_size);
    if (said.message == 0) {
        actor_log(actor, LOG_LEVEL_WARNING, "a failure that the program did not check: %s", text);
        return 0;
    }
    r = delivery_claim(actor, said.message, &envelope);
    if (r < 0)
        return r == -ENOMEM ? 0 : r;
    const struct undeliverable why = {
        .reason = erred ? DEAD_ERROR : DEAD_UNHANDLED,
        .error = erred ? error_of(said.code) : ENOSYS,
        .code = said.code,
        .text = text[0] != '\0' ? text : NULL,
        .quotes = text[0] != '\0',
    };
    actor_self(actor)->counters.dead++;
    undeliverable_end(actor->context, envelope, actor_self(actor), &why);
    return 0;
}

int actor_request_on_stash(struct actor *actor, const struct ring_record *record)
{
    struct protocol_stash stash;
    int r = protocol_get_stash(record->body, record->size, &stash);

    if (r < 0)
        return r;
    r = record->kind == PROTOCOL_STASHED ? delivery_stash(actor, &stash)
                                         : delivery_unstash(actor, stash.message);
    return r == -ENOMEM ? 0 : r;
}
