/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The fields of every record, in the order of its struct and of its bytes. protocol.c makes the
 * puts and gets of these tables, the tests make their records of them.
 *
 *   u8 u32 i32 u64           as they are
 *   enumeration, LAST        u8, 0 … LAST
 *   flags, KNOWN             u32 without unknown bits
 *   signal_number            u8, 1 … PROTOCOL_SIGNAL_MAX
 *   process_id               i32, at least 1
 *   bytes, MAX               u32 size, so many bytes; `member` and `member_size` of the struct
 *   optional, MAX            u32 1 + size, or 0 for NULL; bytes
 *   topic                    type as bytes, key as optional
 *   id                       u64 high, u64 low, u32 size, name
 *   payload                  u64 size, u64 serial, u8 form, tail
 *   content                  u64 size, u64 serial, u8 form, u8 type size, u16 1 + key size (0 = no
 *                            key), u32 zero, type, key, tail
 *
 * A payload's tail is zero bytes up to a multiple of 8 from the record's begin, inline data, and a
 * zero byte: inline data is aligned and ends as text does.
 */

#define PROTOCOL_FIELDS_job(F)                                                                     \
    F(u64, handle)                                                                                 \
    F(u32, attempt)                                                                                \
    F(u32, max_attempts)                                                                           \
    F(u64, timeout)                                                                                \
    F(id, id)                                                                                      \
    F(bytes, key, PROTOCOL_KEY_MAX)                                                                \
    F(payload, payload)

#define PROTOCOL_FIELDS_started(F)                                                                 \
    F(u64, handle)                                                                                 \
    F(u32, attempt)                                                                                \
    F(u32, state_sequence)

#define PROTOCOL_FIELDS_result(F)                                                                  \
    F(u64, handle)                                                                                 \
    F(u32, attempt)                                                                                \
    F(enumeration, outcome, PROTOCOL_CANCELLED)                                                    \
    F(i32, code)                                                                                   \
    F(payload, payload)

#define PROTOCOL_FIELDS_crashed(F)                                                                 \
    F(u64, handle)                                                                                 \
    F(u32, attempt)                                                                                \
    F(process_id, pid)                                                                             \
    F(signal_number, signal)                                                                       \
    F(enumeration, core_dumped, true)                                                              \
    F(u64, uptime)                                                                                 \
    F(u64, user)                                                                                   \
    F(u64, system)                                                                                 \
    F(u64, max_rss)                                                                                \
    F(bytes, command, PROTOCOL_COMMAND_MAX)

#define PROTOCOL_FIELDS_lookup(F)                                                                  \
    F(u64, cookie)                                                                                 \
    F(bytes, name, PROTOCOL_KEY_MAX)

#define PROTOCOL_FIELDS_found(F)                                                                   \
    F(u64, cookie)                                                                                 \
    F(u64, group)

#define PROTOCOL_FIELDS_submit(F)                                                                  \
    F(u64, cookie)                                                                                 \
    F(u64, group)                                                                                  \
    F(flags, flags, PROTOCOL_SUBMIT_KNOWN)                                                         \
    F(u32, max_retries)                                                                            \
    F(u64, timeout)                                                                                \
    F(u64, backoff_min)                                                                            \
    F(u64, backoff_max)                                                                            \
    F(u8, priority)                                                                                \
    F(u64, delay)                                                                                  \
    F(u64, at)                                                                                     \
    F(u64, wait)                                                                                   \
    F(u64, deadline)                                                                               \
    F(bytes, name, PROTOCOL_NAME_MAX)                                                              \
    F(bytes, key, PROTOCOL_KEY_MAX)                                                                \
    F(payload, payload)

#define PROTOCOL_FIELDS_by_id(F)                                                                   \
    F(u64, cookie)                                                                                 \
    F(id, id)

#define PROTOCOL_FIELDS_accepted(F)                                                                \
    F(u64, cookie)                                                                                 \
    F(id, id)

#define PROTOCOL_FIELDS_refused(F)                                                                 \
    F(u64, cookie)                                                                                 \
    F(u32, error)                                                                                  \
    F(bytes, reason, PROTOCOL_REASON_MAX)

#define PROTOCOL_FIELDS_done(F)                                                                    \
    F(u64, cookie)                                                                                 \
    F(id, id)                                                                                      \
    F(enumeration, end, PROTOCOL_END_TIMED_OUT)                                                    \
    F(i32, code)                                                                                   \
    F(u32, attempts)                                                                               \
    F(bytes, reason, PROTOCOL_REASON_MAX)                                                          \
    F(payload, payload)

/* ---- messages of actors ---- */

#define PROTOCOL_FIELDS_tell(F)                                                                    \
    F(u64, to)                                                                                     \
    F(content, content)

#define PROTOCOL_FIELDS_ask(F)                                                                     \
    F(u64, to)                                                                                     \
    F(u64, cookie)                                                                                 \
    F(u64, timeout)                                                                                \
    F(bytes, wanted, TOPIC_TYPE_MAX)                                                               \
    F(content, content)

#define PROTOCOL_FIELDS_reply(F)                                                                   \
    F(u64, ask)                                                                                    \
    F(content, content)

#define PROTOCOL_FIELDS_forward(F)                                                                 \
    F(u64, message)                                                                                \
    F(u64, to)                                                                                     \
    F(enumeration, new_key, true)                                                                  \
    F(optional, key, TOPIC_KEY_MAX)

#define PROTOCOL_FIELDS_leave(F) F(bytes, reason, PROTOCOL_REASON_MAX)

#define PROTOCOL_FIELDS_verdict(F)                                                                 \
    F(u64, message)                                                                                \
    F(i32, code)                                                                                   \
    F(bytes, text, PROTOCOL_REASON_MAX)

#define PROTOCOL_FIELDS_stash(F)                                                                   \
    F(u64, message)                                                                                \
    F(flags, flags, PROTOCOL_STASH_IN_HAND)

/* What comes before the content. */
#define PROTOCOL_HEAD_message(F)                                                                   \
    F(u64, id)                                                                                     \
    F(u64, sender)                                                                                 \
    F(u64, ask)                                                                                    \
    F(u64, timer)                                                                                  \
    F(u64, sent_at)                                                                                \
    F(u32, flags)                                                                                  \
    F(u32, attempt)

#define PROTOCOL_FIELDS_message(F) PROTOCOL_HEAD_message(F) F(content, content)

#define PROTOCOL_FIELDS_replied(F)                                                                 \
    F(u64, cookie)                                                                                 \
    F(u64, from)                                                                                   \
    F(content, content)

#define PROTOCOL_FIELDS_terminated(F)                                                              \
    F(u64, reference)                                                                              \
    F(bytes, cause, PROTOCOL_REASON_MAX)

/* ---- requests of actors ---- */

#define PROTOCOL_FIELDS_named(F)                                                                   \
    F(u64, cookie)                                                                                 \
    F(bytes, name, PROTOCOL_ACTOR_NAME_MAX)

#define PROTOCOL_FIELDS_by_reference(F)                                                            \
    F(u64, cookie)                                                                                 \
    F(u64, reference)

#define PROTOCOL_FIELDS_timer(F)                                                                   \
    F(u64, cookie)                                                                                 \
    F(u64, to)                                                                                     \
    F(u64, at)                                                                                     \
    F(u64, period)                                                                                 \
    F(flags, flags, PROTOCOL_TIMER_REALTIME)                                                       \
    F(content, content)

#define PROTOCOL_FIELDS_timer_cancel(F)                                                            \
    F(u64, cookie)                                                                                 \
    F(u64, timer)                                                                                  \
    F(u64, to)                                                                                     \
    F(bytes, type, TOPIC_TYPE_MAX)

#define PROTOCOL_FIELDS_subscription(F)                                                            \
    F(u64, cookie)                                                                                 \
    F(u64, exchange)                                                                               \
    F(topic, topic)

#define PROTOCOL_FIELDS_exchange(F)                                                                \
    F(u64, cookie)                                                                                 \
    F(enumeration, type, EXCHANGE_PATTERN)                                                         \
    F(bytes, name, PROTOCOL_ACTOR_NAME_MAX)

#define PROTOCOL_FIELDS_answer(F)                                                                  \
    F(u64, cookie)                                                                                 \
    F(u64, value)

/* The most bytes that a record takes beside inline data. */
#define PROTOCOL_ROOM(name) (0u PROTOCOL_FIELDS_##name(PROTOCOL_ROOM_OF))

#define PROTOCOL_ROOM_OF(kind, ...)             +PROTOCOL_ROOM_##kind(__VA_ARGS__)
#define PROTOCOL_ROOM_u8(member)                1u
#define PROTOCOL_ROOM_u32(member)               4u
#define PROTOCOL_ROOM_i32(member)               4u
#define PROTOCOL_ROOM_u64(member)               8u
#define PROTOCOL_ROOM_enumeration(member, last) 1u
#define PROTOCOL_ROOM_flags(member, known)      4u
#define PROTOCOL_ROOM_signal_number(member)     1u
#define PROTOCOL_ROOM_process_id(member)        4u
#define PROTOCOL_ROOM_bytes(member, max)        (4u + (max))
#define PROTOCOL_ROOM_optional(member, max)     (4u + (max))
#define PROTOCOL_ROOM_topic(member)             (8u + TOPIC_TYPE_MAX + TOPIC_KEY_MAX)
#define PROTOCOL_ROOM_id(member)                (20u + PROTOCOL_NAME_MAX)
#define PROTOCOL_ROOM_payload(member)           PAYLOAD_FIXED
#define PROTOCOL_ROOM_content(member)           PROTOCOL_CONTENT_FIXED
