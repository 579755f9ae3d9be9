/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The records by which actors talk to each other through the supervisor; as in protocol.h. Requests
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
 * A reference names one actor for ever: generation << 32 | index; 0 = nobody. The supervisor fills
 * in the sender of a MESSAGE.
 *
 * Records from FIND and MONITOR to ANSWER, by which actors ask something of the supervisor itself,
 * are in protocol-requests.h.
 */

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

/*
 * What every message carries. In TELL, REPLY, MESSAGE and REPLIED it begins at a multiple of 8, so
 * the supervisor can copy its bytes from one to the other in one piece.
 */
struct protocol_content {
    struct topic topic; /* borrowed like the payload */
    struct payload_wire payload;
};

/* Bytes of a content beside an inline payload, at most. */
#define PROTOCOL_CONTENT_FIXED (PAYLOAD_FIXED + 7u + TOPIC_TYPE_MAX + TOPIC_KEY_MAX)
/* A record's body beside an inline payload, at most. */
#define PROTOCOL_MESSAGE_FIXED (48u + PROTOCOL_CONTENT_FIXED)

struct protocol_tell {
    uint64_t to;
    struct protocol_content content;
};

/* How long an ask waits for its reply when nothing else is said. */
#define PROTOCOL_ASK_TIMEOUT (30 * USEC_PER_SEC)

/* Ends in exactly one REPLIED or ASK_FAILED, unless the asker dies before. */
struct protocol_ask {
    uint64_t to;
    uint64_t cookie;
    usec_t timeout;     /* USEC_INFINITY = none */
    const char *wanted; /* type of the reply, or an ancestor of it; "" = any */
    uint32_t wanted_size;
    struct protocol_content content;
};

struct protocol_reply {
    uint64_t ask; /* the handle that came with the MESSAGE */
    struct protocol_content content;
};

/*
 * Reports name a message by the id of its MESSAGE, while it is in hand or stashed. Reports come in
 * the order of the ring; a message that is to be named later is STASHED first. Id 0 in ERRED: a
 * failure that the program did not look at, for the log.
 */
struct protocol_forward {
    uint64_t message;
    uint64_t to;
    bool new_key;    /* `key` takes the place of the message's */
    const char *key; /* at most TOPIC_KEY_MAX; NULL = none */
    uint32_t key_size;
};

/* LEAVE: the worker ends by itself, without a failure. */
struct protocol_leave {
    const char *reason; /* at most PROTOCOL_REASON_MAX */
    uint32_t reason_size;
};

/* UNHANDLED (code 0) and ERRED: this actor is done with the message. */
struct protocol_verdict {
    uint64_t message;
    int32_t code;
    const char *text; /* at most PROTOCOL_REASON_MAX */
    uint32_t text_size;
};

enum protocol_stash_flags {
    /* Its handler runs or waits for something: the message counts as in hand. */
    PROTOCOL_STASH_IN_HAND = 1u << 0,
};

/*
 * STASHED: the supervisor keeps the message until UNSTASHED, a verdict or FORWARD. A second STASHED
 * replaces the flags. It is published before the head passes the message. UNSTASHED: flags 0.
 */
struct protocol_stash {
    uint64_t message;
    uint32_t flags;
};

enum protocol_message_flags {
    PROTOCOL_MESSAGE_REDELIVERED = 1u << 0, /* a worker before had it in hand when it died */
    PROTOCOL_MESSAGE_TIMER = 1u << 1,       /* a timer's: `timer` is its id */
    PROTOCOL_MESSAGE_EXCHANGE = 1u << 2,    /* came through an exchange */
    PROTOCOL_MESSAGE_POOL = 1u << 3,        /* was told to the pool, not to this slot */
};

struct protocol_message {
    uint64_t id;
    uint64_t sender;  /* 0 = nobody who could be answered */
    uint64_t ask;     /* handle for REPLY; 0 = nobody asked */
    uint64_t timer;   /* id; 0 = none */
    usec_t sent_at;   /* realtime */
    uint32_t flags;   /* bits may be added: ignore unknown ones */
    uint32_t attempt; /* how often it was in hand when a worker died */
    struct protocol_content content;
};

/* ASK_FAILED is a struct protocol_refused: cookie, errno, reason. */
struct protocol_replied {
    uint64_t cookie;
    uint64_t from;
    struct protocol_content content;
};

/* Once for every MONITOR. */
struct protocol_terminated {
    uint64_t reference;
    const char *cause; /* text, at most PROTOCOL_REASON_MAX */
    uint32_t cause_size;
};

/*
 * Reads the content at the beginning of `bytes`, which may go on behind it, and returns its size.
 * 0 or -EBADMSG.
 */
int protocol_get_content(const void *bytes, uint32_t size, struct protocol_content *ret,
                         uint32_t *ret_size);

/* Writes what precedes the content of a MESSAGE: PROTOCOL_MESSAGE_CONTENT bytes. */
void protocol_put_message_head(void *body, const struct protocol_message *record);

/* Where the content begins. */
#define PROTOCOL_TELL_CONTENT    8u
#define PROTOCOL_REPLY_CONTENT   8u
#define PROTOCOL_MESSAGE_CONTENT 48u
#define PROTOCOL_REPLIED_CONTENT 16u

#define PROTOCOL_ACTOR_RECORDS(R)                                                                  \
    R(tell)                                                                                        \
    R(ask)                                                                                         \
    R(reply)                                                                                       \
    R(forward)                                                                                     \
    R(leave)                                                                                       \
    R(verdict)                                                                                     \
    R(stash)                                                                                       \
    R(message)                                                                                     \
    R(replied)                                                                                     \
    R(terminated)

PROTOCOL_ACTOR_RECORDS(PROTOCOL_DECLARE)
