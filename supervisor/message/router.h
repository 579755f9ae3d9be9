/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sends messages to actors. A message is delivered, waits in a bounded mailbox, or becomes a dead
 * letter. The supervisor sets the sender; workers and clients cannot forge it.
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
    ROUTER_E_GONE,     /* the actor has ended, or never was */
    ROUTER_E_FULL,     /* its mailbox is full */
    ROUTER_E_NO_MATCH, /* no subscription of the exchange matches */
    ROUTER_E_NO_KEY,   /* Cells=by-key: the message has no key, or one that cannot name a cell */
    ROUTER_E_CELLS,    /* Cells=by-key: CellsMax= is reached */
    ROUTER_E_MEMORY,   /* some or all copies are lost: no memory or descriptor */
};

/* Sends a message; takes it over. 0, or ROUTER_E_*: it is a dead letter. */
int router_send(struct actor *to, struct envelope *envelope);
int router_send_to(struct message_context *context, uint64_t to, struct envelope *envelope);

/* A message from outside. The payload is taken unless the result is -ENOMEM. */
struct router_message {
    uint64_t sender; /* 0 = none */
    uint64_t to;
    struct topic topic;      /* checked by the caller */
    struct payload *payload; /* NULL = none */
};

/* 0, ROUTER_E_* (it is a dead letter), or -ENOMEM (nothing has happened). */
int router_tell(struct message_context *context, const struct router_message *message);

/*
 * Asks on behalf of a caller without mailbox; `wanted` is the type of the reply. On 0, with the
 * ask's handle, `done` is called exactly once, after this call, unless ask_end() comes first. On
 * ROUTER_E_* and -ENOMEM it is not called.
 */
int router_ask(struct message_context *context, const struct router_message *message,
               const char *wanted, usec_t timeout, ask_done_fn done, void *userdata, uint64_t *ret);
