/* SPDX-License-Identifier: MIT */
#pragma once

#include "shared/protocol/protocol-requests.h"
#include "supervisor/message/request/actor-request.h"
#include <limits.h>

/* ---- actor-request.c ---- */

/*
 * Makes a message of a record's content and fetches its payload. Returns 0, -ENOMEM or -EMFILE (the
 * message is lost and logged), or another -errno for a violation.
 */
int actor_request_take_envelope(struct actor *from, uint16_t kind,
                                const struct protocol_content *content, struct envelope **ret);

/* Returns 0 for -ENOMEM and -EMFILE, which are not the sender's fault, else `r`. */
int actor_request_forgive(int r);

/* ---- actor-request-verdict.c ---- */

int actor_request_on_forward(struct actor *actor, const struct ring_record *record);
int actor_request_on_verdict(struct actor *actor, const struct ring_record *record);
int actor_request_on_stash(struct actor *actor, const struct ring_record *record);

/* ---- actor-request-query.c ---- */

/* Like actor_request_on_record(). */
int actor_request_on_request(struct actor *actor, const struct ring_record *record);

/* A request in the supervisor's own memory; its names are terminated. */
struct actor_request {
    uint16_t kind;
    union {
        uint64_t cookie; /* every request begins with it */
        struct protocol_named named;
        struct protocol_by_reference by_reference;
        struct protocol_timer timer; /* its content is still in the ring */
        struct protocol_timer_cancel timer_cancel;
        struct protocol_subscription subscription;
        struct protocol_exchange exchange;
    };
};

/*
 * The answer to a request: `value`, or a refusal with `error` (a positive errno) and `reason`.
 * -ENOMEM and -EMFILE are also refusals, with the text of the errno; any other negative `error` is
 * a violation of the protocol.
 */
struct actor_answer {
    int error;
    const char *reason;
    uint64_t value;
};
#define ANSWER_VALUE(v)     ((struct actor_answer){.value = (v)})
#define ANSWER_ERROR(r)     ((struct actor_answer){.error = (r)})
#define ANSWER_REFUSE(e, r) ((struct actor_answer){.error = (e), .reason = (r)})
/* Values of `error`: the request is read again, in the next turn or when its blob has come. */
#define ANSWER_IN_PARTS   INT_MAX
#define ANSWER_AFTER_BLOB (INT_MAX - 1)

/* The actor whose rights count; NULL = it may change everything, like a client. */
struct actor *actor_request_owner(struct actor *actor);

/* The answer to ACTOR_E_* or -errno. */
struct actor_answer actor_request_refuse_name(int r);

/* ---- actor-request-exchange.c ---- */

struct actor_answer actor_request_on_subscription(struct actor *actor,
                                                  const struct actor_request *request);
struct actor_answer actor_request_on_exchange(struct actor *actor,
                                              const struct actor_request *request);
struct actor_answer actor_request_on_exchange_delete(struct actor *actor,
                                                     const struct actor_request *request);
