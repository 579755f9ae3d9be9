/* SPDX-License-Identifier: MIT */
#pragma once

/* The records of messages between actors through the supervisor; see also protocol.h. Requests
 * with a cookie are answered with ANSWER or REFUSED (FIND: with FOUND or REFUSED). TELL, REPLY,
 * FORWARD and reports about a message have no answer: if they fail, the message becomes a dead
 * letter.
 *
 *   actor → supervisor   FIND TELL ASK REPLY FORWARD, UNHANDLED ERRED STASHED UNSTASHED,
 *                        MONITOR UNMONITOR, TIMER TIMER_CANCEL, SUBSCRIBE UNSUBSCRIBE,
 *                        REGISTER DEREGISTER, EXCHANGE EXCHANGE_DELETE, ASK_DROP, PAUSE RESUME,
 *                        LEAVE
 *   supervisor → actor   MESSAGE, REPLIED ASK_FAILED, TERMINATED, ANSWER, FOUND, REFUSED
 *
 * A reference permanently identifies one actor: generation << 32 | index; 0 = none. The supervisor
 * fills in the sender of a MESSAGE.
 *
 * Records from FIND and MONITOR to ANSWER, which are requests to the supervisor itself, are in
 * protocol-requests.h. */

#include "shared/protocol/protocol.h"
#include "shared/protocol/topic.h"

enum protocol_actor_kind {
    PROTOCOL_FIND = 64,
    PROTOCOL_TELL,
    PROTOCOL_ASK,
    PROTOCOL_REPLY,
    PROTOCOL_FORWARD,
    PROTOCOL_UNHANDLED,
    PROTOCOL_ERRED,
    PROTOCOL_STASHED,
    PROTOCOL_UNSTASHED,
    PROTOCOL_MONITOR,
    PROTOCOL_UNMONITOR,
    PROTOCOL_TIMER,
    PROTOCOL_TIMER_CANCEL,
    PROTOCOL_SUBSCRIBE,
    PROTOCOL_UNSUBSCRIBE,
    PROTOCOL_REGISTER,
    PROTOCOL_DEREGISTER,
    PROTOCOL_EXCHANGE,
    PROTOCOL_EXCHANGE_DELETE,
    PROTOCOL_ASK_DROP,
    PROTOCOL_PAUSE,
    PROTOCOL_RESUME,
    PROTOCOL_LEAVE,
    PROTOCOL_MESSAGE = 96,
    PROTOCOL_REPLIED,
    PROTOCOL_ASK_FAILED,
    PROTOCOL_TERMINATED,
    PROTOCOL_ANSWER,
};

/* The content of every message. In TELL, REPLY, MESSAGE and REPLIED it begins at a multiple of 8,
 * so the supervisor can copy its bytes from one to the other in one piece. */
struct protocol_content {
    struct topic topic; /* borrowed like the payload */
    struct payload_wire payload;
};

/* The maximum size of a content without an inline payload. */
#define PROTOCOL_CONTENT_FIXED (PAYLOAD_FIXED + 7u + TOPIC_TYPE_MAX + TOPIC_KEY_MAX)
/* The maximum size of a record's body without an inline payload. */
#define PROTOCOL_MESSAGE_FIXED (48u + PROTOCOL_CONTENT_FIXED)

#define PROTOCOL_FIELDS_tell(F)                                                                    \
    F(u64, to)                                                                                     \
    F(content, content)
PROTOCOL_RECORD(tell)

/* How long an ask waits for its reply by default. */
#define PROTOCOL_ASK_TIMEOUT (30 * USEC_PER_SEC)

/* An ask ends in exactly one REPLIED or ASK_FAILED, unless the asker dies before. */
#define PROTOCOL_FIELDS_ask(F)                                                                     \
    F(u64, to)                                                                                     \
    F(u64, cookie)                                                                                 \
    F(usec, timeout)                 /* USEC_INFINITY = none */                                    \
    F(bytes, wanted, TOPIC_TYPE_MAX) /* type of the reply, or an ancestor of it; "" = any */       \
    F(content, content)
PROTOCOL_RECORD(ask)

#define PROTOCOL_FIELDS_reply(F)                                                                   \
    F(u64, ask) /* the handle that came with the MESSAGE */                                        \
    F(content, content)
PROTOCOL_RECORD(reply)

/* Reports refer to a message that is being handled or stashed by the id in its MESSAGE. They are in
 * the order of the ring; a message to be reported later is STASHED first. ERRED with id 0: a
 * failure that the program ignored, for the log. */
#define PROTOCOL_FIELDS_forward(F)                                                                 \
    F(u64, message)                                                                                \
    F(u64, to)                                                                                     \
    F(enumeration, new_key, bool, true) /* `key` replaces the message's key */                     \
    F(optional, key, TOPIC_KEY_MAX)     /* NULL = none */
PROTOCOL_RECORD(forward)

/* LEAVE: the worker ends on its own decision, without a failure. */
#define PROTOCOL_FIELDS_leave(F) F(bytes, reason, PROTOCOL_REASON_MAX)
PROTOCOL_RECORD(leave)

/* UNHANDLED (code 0) and ERRED: this actor is done with the message. */
#define PROTOCOL_FIELDS_verdict(F)                                                                 \
    F(u64, message)                                                                                \
    F(i32, code)                                                                                   \
    F(bytes, text, PROTOCOL_REASON_MAX)
PROTOCOL_RECORD(verdict)

enum protocol_stash_flags {
    /* Its handler runs or waits: the message counts as being handled. */
    PROTOCOL_STASH_IN_HAND = 1u << 0,
};

/* STASHED: the supervisor keeps the message until UNSTASHED, a verdict or FORWARD. A second STASHED
 * replaces the flags. It is published before the head passes the message. UNSTASHED: flags 0. */
#define PROTOCOL_FIELDS_stash(F)                                                                   \
    F(u64, message)                                                                                \
    F(flags, flags, PROTOCOL_STASH_IN_HAND)
PROTOCOL_RECORD(stash)

enum protocol_message_flags {
    PROTOCOL_MESSAGE_REDELIVERED = 1u << 0, /* an earlier worker died while handling it */
    PROTOCOL_MESSAGE_TIMER = 1u << 1,       /* from a timer: `timer` is its id */
    PROTOCOL_MESSAGE_EXCHANGE = 1u << 2,    /* through an exchange */
    PROTOCOL_MESSAGE_POOL = 1u << 3,        /* to the pool, not to this slot */
};

/* The fields before the content. */
#define PROTOCOL_HEAD_message(F)                                                                   \
    F(u64, id)                                                                                     \
    F(u64, sender)   /* 0 = no actor to reply to */                                                \
    F(u64, ask)      /* handle for REPLY; 0 = not an ask */                                        \
    F(u64, timer)    /* id; 0 = none */                                                            \
    F(usec, sent_at) /* realtime */                                                                \
    F(u32, flags)    /* bits may be added: ignore unknown ones */                                  \
    F(u32, attempt)  /* how many workers died while handling it */
#define PROTOCOL_FIELDS_message(F) PROTOCOL_HEAD_message(F) F(content, content)
PROTOCOL_RECORD(message)

/* ASK_FAILED is a struct protocol_refused: cookie, errno, reason. */
#define PROTOCOL_FIELDS_replied(F)                                                                 \
    F(u64, cookie)                                                                                 \
    F(u64, from)                                                                                   \
    F(content, content)
PROTOCOL_RECORD(replied)

/* Sent once for every MONITOR. */
#define PROTOCOL_FIELDS_terminated(F)                                                              \
    F(u64, reference)                                                                              \
    F(bytes, cause, PROTOCOL_REASON_MAX) /* text */
PROTOCOL_RECORD(terminated)

/* Reads the content at the beginning of `bytes`, which may continue after it, and returns its size.
 * 0 or -EBADMSG. */
int protocol_get_content(const void *bytes, uint32_t size, struct protocol_content *ret,
                         uint32_t *ret_size);

/* Writes the PROTOCOL_MESSAGE_CONTENT bytes before the content of a MESSAGE. */
void protocol_put_message_head(void *body, const struct protocol_message *record);

/* Where the content begins. */
#define PROTOCOL_TELL_CONTENT    8u
#define PROTOCOL_REPLY_CONTENT   8u
#define PROTOCOL_MESSAGE_CONTENT 48u
#define PROTOCOL_REPLIED_CONTENT 16u
