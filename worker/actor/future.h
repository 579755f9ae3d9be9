/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What an actor has been promised: the end of an ask, of a monitor, of a request to the supervisor.
 * A number that goes over the wire names it, so that an answer to nothing is seen.
 */

#include "shared/base/list.h"
#include "worker/base/content.h"
#include "worker/base/pending.h"
#include "worker/troupe.h"

/* Tells an actor's numbers from those of a client's jobs. */
#define FUTURE_COOKIE (UINT64_C(1) << 63)

enum future_kind {
    FUTURE_ASK,
    FUTURE_MONITOR,
    FUTURE_REQUEST, /* the library's own */
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
    uint64_t cookie;
    troupe_ref to;
    int error;
    bool looked_at, abandoned, is_default;
    uint64_t value; /* ANSWER, FOUND */
    troupe_ref from;
    struct content content;
    void *bytes; /* behind content and reason; NULL = none */
    const char *reason;
    char *default_type; /* NULL = none; the data behind it */
    size_t default_size;
    troupe_future_fn then;
    void *then_userdata;
};

struct futures {
    struct pending pending;
    struct list asks; /* and requests */
    struct list monitors;
};

void futures_init(struct futures *futures);
/* Frees those, too, that the program has not. */
void futures_deinit(struct futures *futures);

/* Waiting, under a number of its own. 0 or -ENOMEM. */
int future_new(struct troupe_future **ret, struct troupe_actor *actor, struct futures *futures,
               enum future_kind kind);

/* The one that waits under that number; stays so. NULL: nobody does. */
struct troupe_future *future_find(const struct futures *futures, uint64_t cookie);

/* Frees the memory, waiting or not. */
void future_delete(struct futures *futures, struct troupe_future *future);

/* How it ends; each forgets its number. Without memory for what came the end is -ENOMEM. */
void future_reply(struct futures *futures, struct troupe_future *future, troupe_ref from,
                  const struct protocol_content *content, int control);
void future_fail(struct futures *futures, struct troupe_future *future, int error,
                 const void *reason, uint32_t reason_size);
void future_value(struct futures *futures, struct troupe_future *future, uint64_t value);
