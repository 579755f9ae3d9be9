/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The records by which actors talk to each other through the supervisor. See protocol.h for what
 * put and get promise. Requests with a cookie are answered with ANSWER or REFUSED (FIND: with FOUND
 * or REFUSED); TELL, REPLY, FORWARD and what a worker says about a message are not answered: what
 * cannot be done with them becomes a dead letter.
 *
 *   actor → supervisor   FIND TELL ASK REPLY FORWARD, UNHANDLED ERRED STASHED UNSTASHED,
 *                        MONITOR UNMONITOR, TIMER TIMER_CANCEL, SUBSCRIBE UNSUBSCRIBE,
 *                        REGISTER DEREGISTER, EXCHANGE EXCHANGE_DELETE, ASK_DROP, PAUSE RESUME,
 *                        LEAVE
 *   supervisor → actor   MESSAGE, REPLIED ASK_FAILED, TERMINATED, ANSWER, FOUND, REFUSED
 *
 * A reference names an actor for good: generation << 32 | index; 0 = nobody. The supervisor alone
 * says who sent a MESSAGE.
 *
 * What actors say to each other and of messages is here, what they ask the supervisor for (from
 * FIND and MONITOR to ANSWER) in protocol-requests.h. Steps for changing a record: as in
 * protocol.h; the tests are in test-protocol-actors.c.
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
 * What every message carries. Its bytes are the same in all records and begin at a multiple of 8,
 * so that the supervisor moves them in one piece: u8 form, u8 type size, u16 1 + key size (0 = no
 * key), u32 zero, u64 payload size, u64 blob serial; type, key, zero bytes up to a multiple of 8,
 * inline payload, a zero byte. So an inline payload is 8-aligned and ends as text does.
 */
struct protocol_content {
    struct topic topic; /* borrowed like the payload */
    struct payload_wire payload;
};

/* Bytes of a content beside an inline payload, at most. */
#define PROTOCOL_CONTENT_FIXED (24u + ((TOPIC_TYPE_MAX + TOPIC_KEY_MAX + 7u) & ~7u) + 1u)
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
 * A message is named by the id of its MESSAGE (in ERRED, 0 = none: a failure that nobody looked at,
 * for the log), and only while it is in hand or stashed: reports come
 * in the order of the ring, and whatever is to be named later is STASHED first.
 */
struct protocol_forward {
    uint64_t message;
    uint64_t to;
    bool new_key;    /* `key` takes the place of the message's */
    const char *key; /* at most TOPIC_KEY_MAX; NULL = none */
    uint32_t key_size;
};

/* LEAVE: the worker ends by itself, and not because something has failed. */
struct protocol_leave {
    const char *reason; /* at most PROTOCOL_REASON_MAX */
    uint32_t reason_size;
};

/* UNHANDLED (code 0) and ERRED: the message's end at this actor. */
struct protocol_verdict {
    uint64_t message;
    int32_t code;
    const char *text; /* at most PROTOCOL_REASON_MAX */
    uint32_t text_size;
};

enum protocol_stash_flags {
    /* Its handler has begun and waits for something, or begins now: it counts as in hand. */
    PROTOCOL_STASH_IN_HAND = 1u << 0,
};

/*
 * STASHED: the supervisor keeps the message until UNSTASHED (or a verdict, or FORWARD) says that it
 * is done; said again with other flags, these replace the former ones. Published before the head
 * goes past the message. `flags` is 0 in UNSTASHED.
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

/* The content that `bytes` begin with, and its size; for moving it in one piece. 0 or -EBADMSG. */
int protocol_get_content(const void *bytes, uint32_t size, struct protocol_content *ret,
                         uint32_t *ret_size);
/* What comes before the content of a MESSAGE. */
void protocol_put_message_head(struct wire_writer *writer, const struct protocol_message *message);
#define PROTOCOL_TELL_CONTENT    8u /* where it begins */
#define PROTOCOL_REPLY_CONTENT   8u
#define PROTOCOL_MESSAGE_CONTENT 48u
#define PROTOCOL_REPLIED_CONTENT 16u

/* As all put and get: see protocol.h. */
int protocol_put_tell(void *body, uint32_t size, const struct protocol_tell *tell);
int protocol_get_tell(const void *body, uint32_t size, struct protocol_tell *ret);
int protocol_put_ask(void *body, uint32_t size, const struct protocol_ask *ask);
int protocol_get_ask(const void *body, uint32_t size, struct protocol_ask *ret);
int protocol_put_reply(void *body, uint32_t size, const struct protocol_reply *reply);
int protocol_get_reply(const void *body, uint32_t size, struct protocol_reply *ret);
int protocol_put_forward(void *body, uint32_t size, const struct protocol_forward *forward);
int protocol_get_forward(const void *body, uint32_t size, struct protocol_forward *ret);
int protocol_put_leave(void *body, uint32_t size, const struct protocol_leave *leave);
int protocol_get_leave(const void *body, uint32_t size, struct protocol_leave *ret);
int protocol_put_verdict(void *body, uint32_t size, const struct protocol_verdict *verdict);
int protocol_get_verdict(const void *body, uint32_t size, struct protocol_verdict *ret);
int protocol_put_stash(void *body, uint32_t size, const struct protocol_stash *stash);
int protocol_get_stash(const void *body, uint32_t size, struct protocol_stash *ret);
int protocol_put_message(void *body, uint32_t size, const struct protocol_message *message);
int protocol_get_message(const void *body, uint32_t size, struct protocol_message *ret);
int protocol_put_replied(void *body, uint32_t size, const struct protocol_replied *replied);
int protocol_get_replied(const void *body, uint32_t size, struct protocol_replied *ret);
int protocol_put_terminated(void *body, uint32_t size, const struct protocol_terminated *what);
int protocol_get_terminated(const void *body, uint32_t size, struct protocol_terminated *ret);
