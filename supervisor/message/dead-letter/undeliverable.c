/* SPDX-License-Identifier: MIT */
#include "supervisor/message/dead-letter/undeliverable.h"

#include "shared/base/log.h"
#include "supervisor/event/event.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <stdio.h>

static const char *text_of(const struct undeliverable *why)
{
    return why->text ? why->text : dead_letter_reason_to_string(why->reason);
}

static void announce(struct message_context *context, const struct envelope *envelope,
                     const char *recipient, const struct undeliverable *why)
{
    const bool error = dead_letter_queue_of(why->reason) == DEAD_ERRORS;
    const size_t size = share_owner_size(recipient);
    char message[512], group[DEATH_WORKER_MAX];

    if (!rate_take(&context->announced, loop_now(context->loop), UNDELIVERABLE_ANNOUNCED_MAX, NULL))
        return;
    (void)snprintf(message, sizeof(message), "message %llu for %s, type '%.*s': %s%s%s",
                   (unsigned long long)envelope->id, recipient, (int)envelope->topic.type_size,
                   envelope->topic.type, dead_letter_reason_to_string(why->reason),
                   why->text ? ": " : "", why->text ? why->text : "");
    (void)snprintf(group, sizeof(group), "%.*s", (int)size, recipient);
    event_emit(context->events, (struct event){
                                    .level = error ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG,
                                    .type = error ? "letter.error" : "letter.dead",
                                    .group = why->quotes && *recipient != '@' ? group : NULL,
                                    .message = message,
                                    .quotes = why->quotes,
                                });
}

static void keep(struct message_context *context, struct envelope *envelope,
                 const struct actor *recipient, const char *name, const struct undeliverable *why)
{
    const char *sender = actor_name_of(context, envelope->sender);
    struct dead_letter letter = {
        .reason = why->reason,
        .sender = sender[0] != '\0' ? sender : NULL,
        .recipient = name,
        .sender_ref = envelope->sender,
        .recipient_ref = recipient ? recipient->reference : envelope->to,
        .topic = envelope->topic,
        .message = envelope->id,
        .sent_at = envelope->sent_at,
        .code = why->code,
        .text = why->text,
        .attempts = envelope->attempt,
        .n_deaths = why->n_deaths,
    };

    for (size_t i = 0; i < why->n_deaths; i++)
        letter.deaths[i] = why->deaths[i];
    (void)dead_letter_add(&context->dead_letters, &letter, &envelope->payload);
}

void undeliverable_end(struct message_context *context, struct envelope *envelope,
                       const struct actor *recipient, const struct undeliverable *why)
{
    const char *name = recipient   ? recipient->name
                       : why->name ? why->name
                                   : actor_name_of(context, envelope->to);
    const uint64_t ask = envelope->kind == PROTOCOL_MESSAGE ? envelope->ask : 0;

    const struct protocol_message message = envelope_message(envelope);

    if (recipient)
        actor_log_message(recipient, ACTOR_LOG_UNHANDLED, &message, text_of(why));
    announce(context, envelope, name, why);
    keep(context, envelope, recipient, name, why);
    envelope_free(envelope);
    if (ask != 0)
        ask_envelope_died(context, ask, why->error, text_of(why));
}

int undeliverable_refuse(const struct actor *to, struct envelope *envelope,
                         const struct undeliverable *why, int result)
{
    undeliverable_end(to->context, envelope, to, why);
    return result;
}

void undeliverable_lose(struct actor *actor, uint64_t ask)
{
    actor_log(actor, LOG_LEVEL_ERROR, "a message is lost: out of memory");
    ask_envelope_died(actor->context, ask, ENOMEM, "out of memory");
}
