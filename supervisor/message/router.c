/* SPDX-License-Identifier: MIT */
#include "supervisor/message/router.h"

#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <string.h>

int router_send(struct actor *to, struct envelope *envelope)
{
    int r;

    to = actor_self(to);
    if (to->log & ACTOR_LOG_ENQUEUED) {
        const struct protocol_message message = envelope_message(envelope);
        actor_log_message(to, ACTOR_LOG_ENQUEUED, &message, NULL);
    }
    r = to->class->deliver(to, envelope);
    to->counters.accepted += r == 0;
    return r;
}

int router_send_to(struct message_context *context, uint64_t to, struct envelope *envelope)
{
    const struct undeliverable gone = {.reason = DEAD_GONE, .error = ENOENT};
    struct actor *actor = actor_get(context, to);

    if (actor)
        return router_send(actor, envelope);
    envelope->to = to;
    undeliverable_end(context, envelope, NULL, &gone);
    return ROUTER_E_GONE;
}

static int make_envelope(struct message_context *context, const struct router_message *message,
                         struct envelope **ret)
{
    struct envelope *envelope = envelope_new(PROTOCOL_MESSAGE, &message->topic);

    if (!envelope)
        return -ENOMEM;
    if (message->payload)
        payload_move(&envelope->payload, message->payload);
    envelope->id = message_context_next_id(context);
    envelope->sender = message->sender;
    envelope->sent_at = loop_realtime(context->loop);
    *ret = envelope;
    return 0;
}

int router_tell(struct message_context *context, const struct router_message *message)
{
    struct envelope *envelope;
    int r = make_envelope(context, message, &envelope);

    if (r < 0)
        return r;
    return router_send_to(context, message->to, envelope);
}

int router_ask(struct message_context *context, const struct router_message *message,
               const char *wanted, usec_t timeout, ask_done_fn done, void *userdata, uint64_t *ret)
{
    const struct ask_options options = {
        .wanted = {.type = wanted, .type_size = (uint32_t)strlen(wanted)},
        .timeout = timeout,
        .done = done,
        .userdata = userdata,
    };
    struct envelope *envelope;
    struct ask *ask;
    int r;

    r = make_envelope(context, message, &envelope);
    if (r < 0)
        return r;
    r = ask_new(&ask, context, &options);
    if (r < 0) {
        envelope_free(envelope);
        return r;
    }
    envelope->ask = *ret = ask->handle;
    ask->quiet = true;
    r = router_send_to(context, message->to, envelope);
    ask = ask_get(&context->asks, *ret);
    if (r == 0 && ask) {
        ask->quiet = false;
        return 0;
    }
    if (ask)
        ask_end(ask);
    return r != 0 ? r : ROUTER_E_GONE;
}
