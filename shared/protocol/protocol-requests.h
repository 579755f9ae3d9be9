/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The records by which an actor asks something of the supervisor itself, and ANSWER: names,
 * monitors, timers, exchanges. Their kinds, and what each is answered with, stand in
 * protocol-actors.h.
 */

#include "shared/protocol/exchange-kind.h"
#include "shared/protocol/protocol-actors.h"

#define PROTOCOL_ACTOR_NAME_MAX 255

/* FIND, REGISTER, DEREGISTER. */
struct protocol_named {
    uint64_t cookie;
    const char *name; /* text address or name; not NUL-terminated */
    uint32_t name_size;
};

/*
 * MONITOR, UNMONITOR (ANSWER 1 if it was watched), EXCHANGE_DELETE, PAUSE, RESUME. ASK_DROP:
 * nobody waits for the ask of that cookie any more (reference 0; not answered): a reply that still
 * comes is late.
 */
struct protocol_by_reference {
    uint64_t cookie;
    uint64_t reference;
};

enum protocol_timer_flags {
    PROTOCOL_TIMER_REALTIME = 1u << 0, /* `at` is a date; else a delay */
};

struct protocol_timer {
    uint64_t cookie;
    uint64_t to;
    usec_t at;     /* delay, or with PROTOCOL_TIMER_REALTIME microseconds since 1970 */
    usec_t period; /* 0 = once */
    uint32_t flags;
    struct protocol_content content;
};

/* One by its id, or with id 0 all of exactly this type for one recipient. */
struct protocol_timer_cancel {
    uint64_t cookie;
    uint64_t timer;
    uint64_t to;
    const char *type;
    uint32_t type_size;
};

struct protocol_subscription {
    uint64_t cookie;
    uint64_t exchange;
    struct topic topic;
};

struct protocol_exchange {
    uint64_t cookie;
    enum exchange_kind type;
    const char *name;
    uint32_t name_size;
};

struct protocol_answer {
    uint64_t cookie;
    uint64_t value; /* a count, an id, a reference: what the request is answered with */
};

#define PROTOCOL_REQUEST_RECORDS(R)                                                                \
    R(named)                                                                                       \
    R(by_reference)                                                                                \
    R(timer)                                                                                       \
    R(timer_cancel)                                                                                \
    R(subscription)                                                                                \
    R(exchange)                                                                                    \
    R(answer)

PROTOCOL_REQUEST_RECORDS(PROTOCOL_DECLARE)
