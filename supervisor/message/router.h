/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sends messages to actors. A message that is accepted is delivered, waits in a bounded mailbox, or
 * becomes a dead letter. The sender is always the one that the supervisor knows.
 */

#include "shared/base/clock.h"
#include "shared/protocol/topic.h"
#include "supervisor/message/ask/ask.h"
#include "supervisor/message/envelope.h"
#include <stdint.h>

struct actor;
struct message_context;

enum {
    _ROUTER_E_SUCCESS,
    ROUTER_E_GONE,     /* there is no such actor, or not any more */
    ROUTER_E_FULL,     /* its mailbox is full */
    ROUTER_E_NO_MATCH, /* no subscription of the exchange matches */
    ROUTER_E_NO_KEY,   /* Cells=by-key: the message has no key, or one that cannot name a cell */
    ROUTER_E_CELLS,    /* Cells=by-key: CellsMax= is reached */
    ROUTER_E_MEMORY,   /* some or all copies are lost: no memory or descriptor */
};

/* Sends a message; takes it over. 0, or ROUTER_E_*: it is a dead letter then. */
int router_send(struct actor *to, struct envelope *envelope);
/* The same to a reference. */
int router_send_to(struct message_context *context, uint64_t to, struct envelope *envelope);

/* A message from outside. The payload is moved from unless the result is -ENOMEM. */
struct router_message {
    uint64_t sender; /* 0 = nobody */
    uint64_t to;
    struct topic topic;      /* checked by the caller */
    struct payload *payload; /* NULL = none */
};

/* 0, ROUTER_E_* (it is a dead letter then), or -ENOMEM (nothing has happened). */
int router_tell(struct message_context *context, const struct router_message *message);

/*
 * Asks for somebody who has no mailbox; `wanted` is the type of the reply. Unless ask_end() comes
 * first, `done` is called exactly once, never from within this call. 0 with the handle of the ask;
 * on ROUTER_E_* and -ENOMEM, `done` is not called.
 */
int router_ask(struct message_context *context, const struct router_message *message,
               const char *wanted, usec_t timeout, ask_done_fn done, void *userdata, uint64_t *ret);
