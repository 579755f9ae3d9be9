/* SPDX-License-Identifier: MIT */
#ifndef TROUPE_ACTOR_H
#define TROUPE_ACTOR_H

/*
 * Actors: messages between workers, clients, exchanges and troupectl. Included by troupe.h.
 *
 * Every worker and every client is an actor. It handles one message at a time:
 *
 *     static int on_greeting(struct troupe_actor *actor, struct troupe_message *message, void *u)
 *     {
 *         return troupe_message_reply(message, "greeting.answer", "hello", 5);
 *     }
 *
 *     struct troupe_actor *actor = troupe_worker_actor(worker);
 *     troupe_actor_on_message(actor, "greeting", on_greeting, NULL);
 *     troupe_worker_run(worker);
 *
 * and calls others, whoever and wherever they are:
 *
 *     struct troupe_future *future;
 *     troupe_ref greeter;
 *     troupe_actor_lookup(actor, "greeters/0", &greeter);
 *     troupe_actor_ask(actor, greeter, &future, "greeting");
 *     … other asks, other work …
 *     if (troupe_future_await(future, TROUPE_AWAIT_STASH) == 0)
 *         puts(troupe_future_payload(future, &size));
 *     troupe_future_free(future);
 *
 * Messages from one actor to another arrive in the order in which they were sent. A call never runs
 * anything inline, not even a call to oneself: it is a message like any other. What a worker has
 * not handled when it dies is handled by its successor, in order; the message in hand follows
 * OnCrash= of the group. The rules of troupe.h hold here, too. All calls may be made inside and
 * outside of handlers, those of jobs included. Unless said otherwise they fail with -EPIPE when the
 * supervisor is gone, -ENOMEM, -EINVAL for a malformed type, name or key, and -EMSGSIZE.
 *
 * A type is a dotted name, [A-Za-z0-9._-], at most 128 bytes: "order" is the ancestor of
 * "order.created", and "" of all. A key is up to 255 bytes; none (NULL) and an empty one differ.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
struct troupe_worker;
struct troupe_client;
struct troupe_actor;
struct troupe_message;
struct troupe_future;

/* Names an actor for good: through restarts of its worker, and never another one after its end. */
typedef uint64_t troupe_ref;
#define TROUPE_NOBODY ((troupe_ref)0)

/*
 * The worker or client as an actor; lives as long as that. A worker that is to call others out of
 * job handlers asks for it before its first job.
 */
struct troupe_actor *troupe_worker_actor(struct troupe_worker *worker);
struct troupe_actor *troupe_client_actor(struct troupe_client *client);

/*
 * Handles at most one message (a worker: or job), as troupe_worker_turn() does; a client's messages
 * are handled here and in troupe_future_await(), nowhere else. 1 when something was done, 0 when
 * nothing came within `timeout_usec` or a signal handler ran, -ESHUTDOWN when it is to stop,
 * -EPIPE.
 */
int troupe_actor_turn(struct troupe_actor *actor, uint64_t timeout_usec);

/* ---- addresses ---- */

/*
 * "group", "group/cell", "group/slot", "group/cell/slot", an exchange, a registered name, or "@N",
 * a client. -ENOENT when there is none.
 */
int troupe_actor_lookup(struct troupe_actor *actor, const char *address, troupe_ref *ret);

/* The actor's own reference. */
int troupe_actor_self(struct troupe_actor *actor, troupe_ref *ret);

/*
 * The actor's own address: "group/0", "group/cell/0", or "@3" for a client. Valid as long as the
 * actor.
 */
const char *troupe_actor_address(const struct troupe_actor *actor);

/*
 * A further name for the actor itself, in the name space of groups and exchanges. -EEXIST when it
 * is taken. A name that a group's or an exchange's file takes later is lost. Deregistering what is
 * not registered answers 0 (and a warning goes to the log), else 1.
 */
int troupe_actor_register(struct troupe_actor *actor, const char *name);
int troupe_actor_deregister(struct troupe_actor *actor, const char *name);

/* ---- sending ---- */

/*
 * What a message is and how it is sent. Everything but struct_size may be left at zero. The calls
 * below take the type and then any of these by name:
 *
 *     troupe_actor_tell(actor, to, "order", .text = "two of these", .key = "shop", .key_size = 4);
 *
 * A call that ends in _with takes a pointer to options that were filled in before, beginning with
 * TROUPE_MESSAGE_DEFAULTS. C++ has these calls only.
 */
struct troupe_message_options {
    size_t struct_size;     /* sizeof(struct troupe_message_options): lets the struct grow */
    const char *type;       /* NULL = "" */
    const void *data;       /* payload; copied */
    size_t size;            /* of `data`, bytes */
    const char *text;       /* payload instead of `data`: this string without its NUL; copied */
    const void *key;        /* routing key; NULL = none */
    size_t key_size;        /* at most 255 */
    uint64_t timeout_usec;  /* ask: 0 = 30 s, TROUPE_USEC_INFINITY = none */
    const char *reply_type; /* ask: replies of other types do not count; NULL = all do */
    /* ask: taken for the reply after a time-out; both copied. NULL = the time-out is an error. */
    const char *default_type;
    const void *default_data;
    size_t default_size;
    uint64_t period_usec; /* timer: 0 = once */
};

#define TROUPE_MESSAGE_DEFAULTS                                                                    \
    {                                                                                              \
        sizeof(struct troupe_message_options), NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL,  \
            0, 0                                                                                   \
    }

/* Type and options of a message, as above: a pointer to them that is good for one call. */
#define TROUPE_MESSAGE(...)                                                                        \
    (&(const struct troupe_message_options){.struct_size = sizeof(struct troupe_message_options),  \
                                            .type = __VA_ARGS__})

/*
 * int troupe_actor_tell(actor, to, type, …)
 *
 * Tells: sends without expecting anything. What cannot be delivered goes to the dead letters, which
 * the sender does not learn. Waits while the ring is full, and while the recipient's mailbox is
 * full where that has Overflow=block.
 */
int troupe_actor_tell_with(struct troupe_actor *actor, troupe_ref to,
                           const struct troupe_message_options *options);

/*
 * int troupe_actor_ask(actor, to, struct troupe_future **ret, type, …)
 *
 * Asks: returns a future at once, to be ended with troupe_future_free(). It fails with -ETIMEDOUT;
 * -ENOENT the actor is gone; -ENOBUFS its mailbox is full; -ECONNRESET it died with the message in
 * hand; -ENOSYS it does not handle such messages; -EBUSY too many open asks (through an exchange,
 * one for each who gets it); or with what its handler failed with: its errno, or the negative of
 * the code given to troupe_message_fail() (-EIO for codes outside 1 to 4095).
 */
int troupe_actor_ask_with(struct troupe_actor *actor, troupe_ref to, struct troupe_future **ret,
                          const struct troupe_message_options *options);

#ifndef __cplusplus
#define troupe_actor_tell(actor, to, ...)                                                          \
    troupe_actor_tell_with(actor, to, TROUPE_MESSAGE(__VA_ARGS__))
#define troupe_actor_ask(actor, to, ret, ...)                                                      \
    troupe_actor_ask_with(actor, to, ret, TROUPE_MESSAGE(__VA_ARGS__))
#define troupe_actor_timer_after(actor, to, delay_usec, ret_id, ...)                               \
    troupe_actor_timer_after_with(actor, to, delay_usec, ret_id, TROUPE_MESSAGE(__VA_ARGS__))
#define troupe_actor_timer_at(actor, to, realtime_usec, ret_id, ...)                               \
    troupe_actor_timer_at_with(actor, to, realtime_usec, ret_id, TROUPE_MESSAGE(__VA_ARGS__))
#endif

/* ---- futures ---- */

enum troupe_await {
    /* Messages that come meanwhile wait until the handler has returned: its state is its own. */
    TROUPE_AWAIT_STASH = 0,
    /* They are handled meanwhile, out of this very call: what they change has changed then. */
    TROUPE_AWAIT_RUN = 1,
};

/*
 * Waits for the end of a future: 0, or the errno it failed with. -EDEADLK for a call to oneself
 * that would wait for ever, its message being stashed.
 */
int troupe_future_await(struct troupe_future *future, enum troupe_await mode);

/*
 * Waits for the end of any of them, at most `timeout_usec` (0: only looks). The lowest index of one
 * that has ended, however it did; -EAGAIN when none has within that time.
 */
int troupe_future_await_any(struct troupe_future *const *futures, size_t count,
                            enum troupe_await mode, uint64_t timeout_usec);

/* Whether it has ended. Does not look for news: troupe_future_await_any() with a time-out of 0
 * does. */
bool troupe_future_done(const struct troupe_future *future);

/* 0, or the errno it failed with; -EAGAIN while it has not ended. */
int troupe_future_error(struct troupe_future *future);

/*
 * What it ended with, valid until troupe_future_free(): the reply, or "" and the reason of the
 * failure. Never NULL; the payload is 8-aligned and ends with a NUL byte unless it is a blob.
 */
const char *troupe_future_type(const struct troupe_future *future);
const void *troupe_future_payload(const struct troupe_future *future, size_t *ret_size);
const char *troupe_future_reason(const struct troupe_future *future);
troupe_ref troupe_future_from(const struct troupe_future *future);
bool troupe_future_is_default(const struct troupe_future *future);

/*
 * Calls `fn` once when it has ended: never from here, but where messages are handled, before the
 * next one. `fn` may free the future.
 */
typedef void (*troupe_future_fn)(struct troupe_actor *actor, struct troupe_future *future,
                                 void *userdata);
void troupe_future_then(struct troupe_future *future, troupe_future_fn fn, void *userdata);

/*
 * Lets go of it. A failure that nobody looked at (troupe_future_await(), troupe_future_error()) is
 * told to troupe_actor_on_failure(), also when it comes later than this. troupe_future_drop() ends
 * the ask as well: a reply that still comes is late (a dead letter), and no failure is told.
 */
void troupe_future_free(struct troupe_future *future);
void troupe_future_drop(struct troupe_future *future);

/* Hears of failures nobody looked at. Without it the supervisor writes them to its log. */
typedef void (*troupe_failure_fn)(struct troupe_actor *actor, int error, const char *reason,
                                  void *userdata);
void troupe_actor_on_failure(struct troupe_actor *actor, troupe_failure_fn fn, void *userdata);

/* ---- handling ---- */

/* What a handler answers, besides a negative errno: it failed, the message goes to the error queue.
 */
enum troupe_handling {
    TROUPE_HANDLED = 0,
    TROUPE_NOT_HANDLED = 1, /* the message goes to the dead letters */
};

typedef int (*troupe_message_fn)(struct troupe_actor *actor, struct troupe_message *message,
                                 void *userdata);

/*
 * Handles messages of that type and of those it is the ancestor of, as far as nobody nearer does;
 * "" takes what is left. A NULL `fn` takes the handler away. What nobody handles goes to the dead
 * letters.
 */
int troupe_actor_on_message(struct troupe_actor *actor, const char *type, troupe_message_fn fn,
                            void *userdata);

/*
 * From the next message on `fn` alone handles all of them; NULL: nobody does. _default goes back to
 * the handlers by type.
 */
void troupe_actor_become(struct troupe_actor *actor, troupe_message_fn fn, void *userdata);
void troupe_actor_become_default(struct troupe_actor *actor);

/*
 * Calls `fn` when no message has come for so long, and again after each further such span; a span
 * of 0 ends that.
 */
typedef void (*troupe_silence_fn)(struct troupe_actor *actor, void *userdata);
void troupe_actor_on_silence(struct troupe_actor *actor, uint64_t timeout_usec,
                             troupe_silence_fn fn, void *userdata);

/* ---- the message in hand: valid until its handler returns ---- */

const char *troupe_message_type(const struct troupe_message *message);
/* NULL = none. */
const void *troupe_message_key(const struct troupe_message *message, size_t *ret_size);
/* Never NULL; 8-aligned, ends with a NUL byte unless it is a blob. */
const void *troupe_message_payload(const struct troupe_message *message, size_t *ret_size);
/* TROUPE_NOBODY from timers whose actor is gone, and from outside. */
troupe_ref troupe_message_sender(const struct troupe_message *message);
uint64_t troupe_message_id(const struct troupe_message *message);
/* When it was sent, microseconds since 1970. */
uint64_t troupe_message_sent_at(const struct troupe_message *message);
/* The timer that sent it, or 0. */
uint64_t troupe_message_timer(const struct troupe_message *message);
/* Whether a worker that had it in hand died. */
bool troupe_message_is_redelivered(const struct troupe_message *message);

/*
 * What the sender wants to be answered under; 0 = nothing, it told. Good for answering later, when
 * the message is gone.
 */
uint64_t troupe_message_ask(const struct troupe_message *message);

/*
 * Answers. The first reply of the type that the asker wants ends its ask; what comes to an ask that
 * has ended, and a reply to a message that was only told, goes to the dead letters.
 */
int troupe_message_reply(struct troupe_message *message, const char *type, const void *data,
                         size_t size);
int troupe_actor_reply(struct troupe_actor *actor, uint64_t ask, const char *type, const void *data,
                       size_t size);

/*
 * Passes it on with sender and ask as they are; the handler then answers TROUPE_HANDLED. The key
 * stays, too, or is another one (NULL = none).
 */
int troupe_message_forward(struct troupe_message *message, troupe_ref to);
int troupe_message_forward_with_key(struct troupe_message *message, troupe_ref to, const void *key,
                                    size_t key_size);

/*
 * Says why the handler fails: `return troupe_message_fail(message, EACCES, "closed");`. Negative.
 * Whoever asked learns the code, as an errno.
 */
int troupe_message_fail(struct troupe_message *message, int code, const char *text);

/*
 * Puts the message aside until troupe_actor_unstash_all(), which has the stashed ones handled
 * before all others, in their order; it returns how many. A crash loses none. -EALREADY when
 * stashed.
 */
int troupe_message_stash(struct troupe_message *message);
int troupe_actor_unstash_all(struct troupe_actor *actor);

/* ---- holding back and ending ---- */

/*
 * A paused actor is sent messages and handles none of them until it is resumed, then in their
 * order; jobs and answers go on. A worker pauses itself, its own cell and the places in that, and
 * exchanges that it has made: -EPERM for others. A client may pause all. -ENOENT when it is gone.
 */
int troupe_actor_pause(struct troupe_actor *actor, troupe_ref which);
int troupe_actor_resume(struct troupe_actor *actor, troupe_ref which);

/*
 * A worker ends itself, which is no failure: it handles nothing after what it has in hand, and
 * troupe_worker_run() returns 0. Another worker takes its place at once, unless its group has
 * Restart=no, and what it has not begun is handled by that one. `reason`, at most 512 bytes, is in
 * its death report. -EINVAL for a client. Who does this within MinSec= of its start has failed.
 */
int troupe_actor_leave(struct troupe_actor *actor, const char *reason);

/* ---- monitors ---- */

/*
 * A future that ends when that actor has ended (the payload is the cause, as text): at once if it
 * is gone already. Freeing the future ends the monitor.
 */
int troupe_actor_monitor(struct troupe_actor *actor, troupe_ref who, struct troupe_future **ret);

/* ---- timers: kept by the supervisor, also when this worker dies ---- */

/*
 * int troupe_actor_timer_after(actor, to, delay_usec, uint64_t *ret_id, type, …)
 * int troupe_actor_timer_at(actor, to, realtime_usec, uint64_t *ret_id, type, …)
 *
 * Sends a message to `to` after a delay, or at a time (microseconds since 1970); again after each
 * `period_usec` of the options, without catching up on what was missed. The id, for cancelling,
 * stays the same (`ret_id` NULL: nobody wants it). -EBUSY when the actor has 100,000 that are still
 * to come, or 64 MiB for them to tell.
 */
int troupe_actor_timer_after_with(struct troupe_actor *actor, troupe_ref to, uint64_t delay_usec,
                                  uint64_t *ret_id, const struct troupe_message_options *options);
int troupe_actor_timer_at_with(struct troupe_actor *actor, troupe_ref to, uint64_t realtime_usec,
                               uint64_t *ret_id, const struct troupe_message_options *options);

/*
 * How many were cancelled: 1 or 0; or all of a type for a recipient. A worker cancels the timers
 * that it has set and those for itself, no others; its successors in the same place do so too.
 */
int troupe_actor_timer_cancel(struct troupe_actor *actor, uint64_t id);
int troupe_actor_timer_cancel_type(struct troupe_actor *actor, troupe_ref to, const char *type);

/* ---- exchanges: actors that forward to their subscribers ---- */

enum troupe_exchange_kind {
    TROUPE_EXCHANGE_SINGLE = 0,       /* the last subscription gets everything */
    TROUPE_EXCHANGE_TYPED_SINGLE = 1, /* one subscriber per type, the exact one first */
    TROUPE_EXCHANGE_TYPED_MULTI = 2,  /* all whose type is the message's or an ancestor */
    TROUPE_EXCHANGE_ROUTING_KEY = 3,  /* the same, and the key must be equal */
    /* The same; in keys `*` stands for one dotted word, `#` for any number of them. */
    TROUPE_EXCHANGE_PATTERN = 4,
};

/*
 * An exchange outlives its maker. -EEXIST when the name is taken. A worker deletes only what it has
 * made, whichever process is in its place by then: -EPERM.
 */
int troupe_actor_exchange_new(struct troupe_actor *actor, const char *name,
                              enum troupe_exchange_kind kind, troupe_ref *ret);
int troupe_actor_exchange_delete(struct troupe_actor *actor, troupe_ref exchange);

/*
 * Subscribes this actor. `type` "" = all; `key` NULL: every key (and none). Unsubscribing takes the
 * very same type and key, and touches one's own subscriptions only: 1, or 0 when there was none.
 */
int troupe_actor_subscribe(struct troupe_actor *actor, troupe_ref exchange, const char *type,
                           const void *key, size_t key_size);
int troupe_actor_unsubscribe(struct troupe_actor *actor, troupe_ref exchange, const char *type,
                             const void *key, size_t key_size);

#ifdef __cplusplus
}
#endif

#endif
