/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Futures of an actor: for asks, monitors, and requests to the supervisor. While a future waits, a
 * number on the wire names it, so an answer without a request is detected.
 */

#include "shared/base/handle-table.h"
#include "shared/base/list.h"
#include "worker/base/content.h"
#include "worker/troupe.h"

/* Distinguishes the numbers of an actor from those of a client's requests. */
#define FUTURE_COOKIE (UINT64_C(1) << 63)

enum future_kind {
    FUTURE_ASK,
    FUTURE_MONITOR,
    FUTURE_REQUEST, /* of the library to the supervisor */
};

enum future_state {
    FUTURE_WAITING,
    FUTURE_ENDED,
};

struct troupe_future {
    struct list link; /* in futures.asks or futures.monitors */
    struct list then_link;
    struct troupe_actor *actor;
    enum future_kind kind;
    enum future_state state;
    uint64_t cookie; /* 0 = has ended */
    uint64_t sent;   /* position of the carrier when its request was about to be sent */
    troupe_ref to;
    int error;
    bool looked_at; /* the program knows the error */
    bool abandoned; /* the program has freed it */
    bool has_default, is_default;
    uint64_t value; /* ANSWER, FOUND */
    troupe_ref from;
    struct content content; /* of the reply; until then, of the default */
    void *bytes;            /* holds content or reason; NULL = none */
    const char *reason;
    troupe_future_fn then;
    void *then_userdata;
};

struct futures {
    struct handle_table table; /* those that wait, by number */
    struct list asks;          /* and requests */
    struct list monitors;
};

void futures_init(struct futures *futures);
/* Frees all futures. */
void futures_deinit(struct futures *futures);

/* Makes a future that waits. Returns 0 or -ENOMEM. */
int future_new(struct troupe_future **ret, struct troupe_actor *actor, struct futures *futures,
               enum future_kind kind);

/* Sets the content that replaces the reply after a time-out. Returns 0 or -ENOMEM. */
int future_set_default(struct troupe_future *future, const struct protocol_content *content);

/* Returns the waiting future with that number, or NULL. */
struct troupe_future *future_find(const struct futures *futures, uint64_t cookie);

/* Frees a future in any state. */
void future_delete(struct futures *futures, struct troupe_future *future);

/* End a future by a reply, an error or a value. Without memory, the error is -ENOMEM. */
void future_reply(struct futures *futures, struct troupe_future *future, troupe_ref from,
                  const struct protocol_content *content, int control);
void future_fail(struct futures *futures, struct troupe_future *future, int error,
                 const void *reason, uint32_t reason_size);
void future_value(struct futures *futures, struct troupe_future *future, uint64_t value);
