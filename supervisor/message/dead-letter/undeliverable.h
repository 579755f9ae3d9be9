/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The end of a message that nobody handles: it becomes a dead letter or goes to the error queue,
 * its ask fails, an event and the message log tell of it.
 */

#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/envelope.h"

struct actor;
struct message_context;

struct undeliverable {
    enum dead_letter_reason reason;
    int error;                   /* errno for the asker */
    int32_t code;                /* the handler's */
    const char *text;            /* NULL = nothing to add */
    struct death *const *deaths; /* of the workers that had it in hand, oldest first */
    size_t n_deaths;
};

/* Frees the message. `recipient` NULL = envelope->to is all that is known of it. */
void undeliverable_end(struct message_context *context, struct envelope *envelope,
                       const struct actor *recipient, const struct undeliverable *why);
/* The same for a message to `to`, which refuses it. Returns `result`, for the sender. */
int undeliverable_refuse(const struct actor *to, struct envelope *envelope,
                         const struct undeliverable *why, int result);
/* A message is lost for want of memory: logs it, and fails its ask. */
void undeliverable_lose(struct actor *actor, uint64_t ask);
/* The same for a message to an actor that does not exist any more. */
void undeliverable_end_gone(struct message_context *context, struct envelope *envelope,
                            uint64_t to);
