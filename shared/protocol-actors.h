/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The records by which actors talk to each other through the supervisor. See protocol.h for what
 * put and get promise. Requests with a cookie are answered with ANSWER or REFUSED (FIND: with FOUND
 * or REFUSED); TELL, REPLY, FORWARD and what a worker says about a letter are not answered: what
 * cannot be done with them becomes a dead letter.
 *
 *   actor → supervisor   FIND TELL ASK REPLY FORWARD, UNHANDLED ERRED STASHED UNSTASHED,
 *                        WATCH_ACTOR UNWATCH, TIMER TIMER_CANCEL, SUBSCRIBE UNSUBSCRIBE,
 *                        REGISTER DEREGISTER, EXCHANGE EXCHANGE_DELETE, ASK_DROP
 *   supervisor → actor   MESSAGE, REPLIED ASK_FAILED, TERMINATED, ANSWER, FOUND, REFUSED
 *
 * A reference names an actor for good: generation << 32 | index; 0 = nobody. The supervisor alone
 * says who sent a MESSAGE.
 *
 * Steps for changing a record: as in protocol.h; the tests are in test-protocol-actors.c.
 */

#include "protocol.h"
#include "topic.h"

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
    PROTOCOL_WATCH_ACTOR,
    PROTOCOL_UNWATCH,
    PROTOCOL_TIMER,
    PROTOCOL_TIMER_CANCEL,
    PROTOCOL_SUBSCRIBE,
    PROTOCOL_UNSUBSCRIBE,
    PROTOCOL_REGISTER,
    PROTOCOL_DEREGISTER,
    PROTOCOL_EXCHANGE,
    PROTOCOL_EXCHANGE_DELETE,
    PROTOCOL_ASK_DROP,
    PROTOCOL_MESSAGE = 96,
    PROTOCOL_REPLIED,
    PROTOCOL_ASK_FAILED,
    PROTOCOL_TERMINATED,
    PROTOCOL_ANSWER,
};

#define PROTOCOL_ACTOR_NAME_MAX 255

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

/* FIND, REGISTER, DEREGISTER. */
struct protocol_named {
    uint64_t cookie;
    const char *name; /* text address or name; not NUL-terminated */
    uint32_t name_size;
};

struct protocol_tell {
    uint64_t to;
    struct protocol_content content;
};

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
 * A letter is named by the id of its MESSAGE (in ERRED, 0 = none: a failure that nobody looked at,
 * for the log), and only while it is in hand or stashed: reports come
 * in the order of the ring, and whatever is to be named later is STASHED first.
 */
struct protocol_forward {
    uint64_t letter;
    uint64_t to;
};

/* UNHANDLED (code 0) and ERRED: the letter's end at this actor. */
struct protocol_verdict {
    uint64_t letter;
    int32_t code;
    const char *text; /* at most PROTOCOL_REASON_MAX */
    uint32_t text_size;
};

enum protocol_stash_flags {
    /* Its handler has begun and waits for something, or begins now: it counts as in hand. */
    PROTOCOL_STASH_IN_HAND = 1u << 0,
};

/*
 * STASHED: the supervisor keeps the letter until UNSTASHED (or a verdict, or FORWARD) says that it
 * is done; said again with other flags, these replace the former ones. Published before the head
 * goes past the letter. `flags` is 0 in UNSTASHED.
 */
struct protocol_stash {
    uint64_t letter;
    uint32_t flags;
};

/*
 * WATCH_ACTOR, UNWATCH (ANSWER 1 if it was watched), EXCHANGE_DELETE. ASK_DROP: nobody waits for
 * the ask of that cookie any more (reference 0; not answered): a reply that still comes is late.
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

enum protocol_exchange_type {
    PROTOCOL_EXCHANGE_SINGLE = 0,
    PROTOCOL_EXCHANGE_TYPED_SINGLE = 1,
    PROTOCOL_EXCHANGE_TYPED_MULTI = 2,
    PROTOCOL_EXCHANGE_ROUTING_KEY = 3,
};

struct protocol_exchange {
    uint64_t cookie;
    enum protocol_exchange_type type;
    bool wildcards; /* `*` and `#` in keys (routing-key only) */
    const char *name;
    uint32_t name_size;
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

/* Once for every WATCH_ACTOR. */
struct protocol_terminated {
    uint64_t reference;
    const char *cause; /* text, at most PROTOCOL_REASON_MAX */
    uint32_t cause_size;
};

struct protocol_answer {
    uint64_t cookie;
    uint64_t value; /* a count, an id, a reference: what the request is answered with */
};

/* The content that `bytes` begin with, and its size; for moving it in one piece. 0 or -EBADMSG. */
int protocol_get_content(const void *bytes, uint32_t size, struct protocol_content *ret,
                         uint32_t *ret_size);
/* What comes before the content of a MESSAGE. */
void protocol_put_message_head(struct message_writer *writer,
                               const struct protocol_message *message);
#define PROTOCOL_TELL_CONTENT    8u /* where it begins */
#define PROTOCOL_ASK_CONTENT     24u
#define PROTOCOL_REPLY_CONTENT   8u
#define PROTOCOL_MESSAGE_CONTENT 48u
#define PROTOCOL_REPLIED_CONTENT 16u

int protocol_put_named(void *body, uint32_t size, const struct protocol_named *named);
int protocol_get_named(const void *body, uint32_t size, struct protocol_named *ret);
int protocol_put_tell(void *body, uint32_t size, const struct protocol_tell *tell);
int protocol_get_tell(const void *body, uint32_t size, struct protocol_tell *ret);
int protocol_put_ask(void *body, uint32_t size, const struct protocol_ask *ask);
int protocol_get_ask(const void *body, uint32_t size, struct protocol_ask *ret);
int protocol_put_reply(void *body, uint32_t size, const struct protocol_reply *reply);
int protocol_get_reply(const void *body, uint32_t size, struct protocol_reply *ret);
int protocol_put_forward(void *body, uint32_t size, const struct protocol_forward *forward);
int protocol_get_forward(const void *body, uint32_t size, struct protocol_forward *ret);
int protocol_put_verdict(void *body, uint32_t size, const struct protocol_verdict *verdict);
int protocol_get_verdict(const void *body, uint32_t size, struct protocol_verdict *ret);
int protocol_put_stash(void *body, uint32_t size, const struct protocol_stash *stash);
int protocol_get_stash(const void *body, uint32_t size, struct protocol_stash *ret);
int protocol_put_by_reference(void *body, uint32_t size, const struct protocol_by_reference *by);
int protocol_get_by_reference(const void *body, uint32_t size, struct protocol_by_reference *ret);
int protocol_put_timer(void *body, uint32_t size, const struct protocol_timer *timer);
int protocol_get_timer(const void *body, uint32_t size, struct protocol_timer *ret);
int protocol_put_timer_cancel(void *body, uint32_t size, const struct protocol_timer_cancel *what);
int protocol_get_timer_cancel(const void *body, uint32_t size, struct protocol_timer_cancel *ret);
int protocol_put_subscription(void *body, uint32_t size, const struct protocol_subscription *what);
int protocol_get_subscription(const void *body, uint32_t size, struct protocol_subscription *ret);
int protocol_put_exchange(void *body, uint32_t size, const struct protocol_exchange *exchange);
int protocol_get_exchange(const void *body, uint32_t size, struct protocol_exchange *ret);
int protocol_put_message(void *body, uint32_t size, const struct protocol_message *message);
int protocol_get_message(const void *body, uint32_t size, struct protocol_message *ret);
int protocol_put_replied(void *body, uint32_t size, const struct protocol_replied *replied);
int protocol_get_replied(const void *body, uint32_t size, struct protocol_replied *ret);
int protocol_put_terminated(void *body, uint32_t size, const struct protocol_terminated *what);
int protocol_get_terminated(const void *body, uint32_t size, struct protocol_terminated *ret);
int protocol_put_answer(void *body, uint32_t size, const struct protocol_answer *answer);
int protocol_get_answer(const void *body, uint32_t size, struct protocol_answer *ret);
