/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Ends a message that was not handled: it becomes a dead letter or goes to the error queue, its ask
 * fails, and an event and the message log report it.
 */

#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/envelope.h"

struct actor;
struct message_context;

/* Bounds the events about messages per second, so that a flood of them leaves room for others. */
#define UNDELIVERABLE_ANNOUNCED_MAX 50u

struct undeliverable {
    enum dead_letter_reason reason;
    int error;                   /* errno for the asker */
    int32_t code;                /* the handler's */
    const char *text;            /* NULL = none */
    const char *name;            /* of a recipient that has ended; NULL = it is looked up */
    bool quotes;                 /* the text is the handler's: only permitted clients may read it */
    struct death *const *deaths; /* of workers that were handling it, oldest first */
    size_t n_deaths;             /* at most DEAD_LETTER_DEATHS_MAX */
};

/* Frees the message. `recipient` NULL = it has ended, and envelope->to is its reference. */
void undeliverable_end(struct message_context *context, struct envelope *envelope,
                       const struct actor *recipient, const struct undeliverable *why);
/* Like undeliverable_end(), but for a message that `to` refuses. Returns `result`. */
int undeliverable_refuse(const struct actor *to, struct envelope *envelope,
                         const struct undeliverable *why, int result);
/* Logs that a message is lost because memory ran out, and fails its ask. */
void undeliverable_lose(struct actor *actor, uint64_t ask);
