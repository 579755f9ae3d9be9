/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who gets a message, and what becomes of one that nobody gets. The sender is always what the
 * supervisor knows it to be. Everything that is accepted is delivered, waits in a bounded mailbox,
 * or becomes a dead letter.
 */

#include "shared/base/clock.h"
#include "shared/protocol/topic.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/ask.h"
#include "supervisor/message/dead-letter.h"
#include "supervisor/message/envelope.h"
#include "supervisor/message/exchange.h"
#include <stdint.h>

struct context;

enum {
    _ROUTER_E_SUCCESS,
    ROUTER_E_GONE,     /* no such actor, or it is gone */
    ROUTER_E_FULL,     /* its mailbox is (Overflow=reject) */
    ROUTER_E_NO_MATCH, /* an exchange without a subscription for it */
    ROUTER_E_NO_KEY,   /* Cells=by-key, and no key, or one that cannot name a cell */
    ROUTER_E_CELLS,    /* Cells=by-key: CellsMax= is reached */
    ROUTER_E_MEMORY,   /* some or all copies could not be handed on: no memory or descriptor */
};

/*
 * The reference that a text address means: "group", "group/0", "exchange", a registered name,
 * "@3". 0, ROUTER_E_GONE, or -ENOMEM.
 */
int router_find(struct context *context, const char *address, uint64_t *ret);

/* What goes into a message. The payload (NULL = none) is moved from, unless the result is -ENOMEM.
 */
struct router_message {
    uint64_t sender; /* 0 = nobody */
    uint64_t to;
    struct topic topic; /* checked by the caller */
    struct payload *payload;
    uint64_t timer; /* id; 0 = none */
};

/* 0, or ROUTER_E_* (it is a dead letter then), or -ENOMEM (nothing has happened). */
int router_tell(struct context *context, const struct router_message *message);

/*
 * Asks on behalf of somebody without a mailbox; `done` is called exactly once, never from within,
 * unless ask_drop() comes first. `wanted` as in ASK. 0 with `*ret` the handle; ROUTER_E_* and
 * -ENOMEM, and `done` is not called.
 */
int router_ask(struct context *context, const struct router_message *message, const char *wanted,
               usec_t timeout, ask_done_fn done, void *userdata, uint64_t *ret);

/* A place, cell or group without any worker, which stays so until somebody starts it again. */
bool router_is_stopped(const struct actor *actor);

/* A group's or an exchange's: whether nothing waits in it, or is to. */
bool router_is_open(const struct actor *actor);
/* The actor of a group's cell, made if need be; NULL if there can be none. */
struct actor *router_cell_of(const struct actor *group, const char *key, uint32_t key_size);
/* A message that has waited in a group or an exchange, to those whom it is for; moved from. */
void router_hand_on(struct actor *actor, struct envelope *envelope);

/* Whether its mailbox takes one more of that many bytes. */
bool router_has_room(const struct actor *to, uint64_t bytes);

/* Whether an answer of that many bytes may wait for an actor. */
bool router_answer_fits(const struct actor *asker, uint64_t bytes);

/* A message of ours on its way; moved from. As router_tell(). */
int router_send(struct actor *to, struct envelope *envelope);

/*
 * The end of a message that nobody will handle: its ask fails with `error` (errno), it goes to the
 * dead letters or the error queue, and the message log says so. `recipient` NULL = by its
 * reference alone. Frees it.
 */
struct router_verdict {
    enum dead_letter_reason reason;
    int error;                   /* for the asker */
    int32_t code;                /* the handler's */
    const char *text;            /* NULL = nothing to add */
    struct death *const *deaths; /* of workers that had it in hand, oldest first */
    size_t n_deaths;
};
void router_undeliverable(struct context *context, struct envelope *envelope,
                          const struct actor *recipient, const struct router_verdict *verdict);

/* Holds back, or lets go on, what comes for an actor. */
void router_pause(struct actor *actor);
void router_resume(struct actor *actor);

/* An exchange, subscribed to by nobody. 0, ACTOR_E_*, or -ENOMEM. */
int router_add_exchange(struct context *context, const char *name, enum exchange_kind kind,
                        struct actor **ret);

/*
 * The actor is gone for good: what waits for it goes to the dead letters, who watches it is told
 * `cause`, its asks, names, watches, subscriptions and timers end. Frees it.
 */
void router_remove(struct actor *actor, const char *cause);
