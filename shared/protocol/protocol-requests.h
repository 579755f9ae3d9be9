/* SPDX-License-Identifier: MIT */
#pragma once

/* Requests of an actor to the supervisor itself, about names, monitors, timers and exchanges, and
 * ANSWER. protocol-actors.h has their kinds and answers. */

#include "shared/protocol/exchange-kind.h"
#include "shared/protocol/protocol-actors.h"

#define PROTOCOL_ACTOR_NAME_MAX 255

/* FIND, REGISTER, DEREGISTER. */
#define PROTOCOL_FIELDS_named(F)                                                                   \
    F(u64, cookie)                                                                                 \
    F(bytes, name, PROTOCOL_ACTOR_NAME_MAX) /* text address or name; not NUL-terminated */
PROTOCOL_RECORD(named)

/* MONITOR, UNMONITOR (ANSWER 1 if it was monitored), EXCHANGE_DELETE, PAUSE, RESUME. ASK_DROP
 * (reference 0; not answered): the ask with that cookie is dropped, and a later reply is late. */
#define PROTOCOL_FIELDS_by_reference(F)                                                            \
    F(u64, cookie)                                                                                 \
    F(u64, reference)
PROTOCOL_RECORD(by_reference)

enum protocol_timer_flags {
    PROTOCOL_TIMER_REALTIME = 1u << 0,
};

#define PROTOCOL_FIELDS_timer(F)                                                                   \
    F(u64, cookie)                                                                                 \
    F(u64, to)                                                                                     \
    F(usec, at)     /* delay, or with PROTOCOL_TIMER_REALTIME a date since 1970 */                 \
    F(usec, period) /* 0 = once */                                                                 \
    F(flags, flags, PROTOCOL_TIMER_REALTIME)                                                       \
    F(content, content)
PROTOCOL_RECORD(timer)

/* Cancels one timer by its id, or with id 0 all of exactly this type for one recipient. */
#define PROTOCOL_FIELDS_timer_cancel(F)                                                            \
    F(u64, cookie)                                                                                 \
    F(u64, timer)                                                                                  \
    F(u64, to)                                                                                     \
    F(bytes, type, TOPIC_TYPE_MAX)
PROTOCOL_RECORD(timer_cancel)

#define PROTOCOL_FIELDS_subscription(F)                                                            \
    F(u64, cookie)                                                                                 \
    F(u64, exchange)                                                                               \
    F(topic, topic)
PROTOCOL_RECORD(subscription)

#define PROTOCOL_FIELDS_exchange(F)                                                                \
    F(u64, cookie)                                                                                 \
    F(enumeration, type, enum exchange_kind, EXCHANGE_PATTERN)                                     \
    F(bytes, name, PROTOCOL_ACTOR_NAME_MAX)
PROTOCOL_RECORD(exchange)

#define PROTOCOL_FIELDS_answer(F)                                                                  \
    F(u64, cookie)                                                                                 \
    F(u64, value) /* a count, an id or a reference, depending on the request */
PROTOCOL_RECORD(answer)

/* All records of the protocol. */
/* clang-format off */
#define PROTOCOL_RECORDS(R)                                                                        \
    R(job_rare) R(job) R(started) R(result) R(emitted) R(checkpoint) R(crashed) R(lookup) R(found) R(submit_rare) R(submit) R(by_id) \
    R(accepted) R(refused) R(done)                                                                 \
    R(tell) R(ask) R(reply) R(forward) R(leave) R(verdict) R(stash) R(message) R(replied)          \
    R(terminated)                                                                                  \
    R(named) R(by_reference) R(timer) R(timer_cancel) R(subscription) R(exchange) R(answer)
/* clang-format on */
