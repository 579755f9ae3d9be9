/* SPDX-License-Identifier: MIT */
#ifndef TROUPE_ACTOR_H
#define TROUPE_ACTOR_H

/*
 * Actors: messages between workers, clients, exchanges and troupectl. Included by troupe.h, whose
 * rules apply here.
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
 * and asks others, wherever they are:
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
 * Messages from one actor to another arrive in the order in which they were sent. No call runs a
 * handler inline, not even a message to oneself. When a worker dies, its successor handles what it
 * has not, in order; OnCrash= decides about the message in hand. All functions may be called inside
 * and outside of handlers, those of jobs included. -EINVAL means a malformed type, name or key.
 *
 * A type is a dotted name of at most 128 characters of [A-Za-z0-9._-]: "order" is the ancestor of
 * "order.created", and "" of all. A key is up to 255 bytes; no key (NULL) and an empty one differ.
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

/* Identifies an actor for good, also after its worker or the supervisor was restarted. Never
 * reused. */
typedef uint64_t troupe_ref;
#define TROUPE_NOBODY ((troupe_ref)0)

/*
 * Return the worker or client as an actor, which lives as long. Call this before the first job if
 * job handlers are to use the actor.
 */
struct troupe_actor *troupe_worker_actor(struct troupe_worker *worker);
struct troupe_actor *troupe_client_actor(struct troupe_client *client);

/*
 * Handles at most one message (a worker: or job), and waits for it up to `timeout_usec`. A client's
 * messages are handled here and in troupe_future_await() only. Returns 1, 0 if nothing came or a
 * signal handler ran, or -ESHUTDOWN when the worker is to stop.
 */
int troupe_actor_turn(struct troupe_actor *actor, uint64_t timeout_usec);

/* ---- addresses ---- */

/*
 * Finds "group", "group/cell", "group/slot", "group/cell/slot", an exchange, a registered name, or
 * "@N", a client. -ENOENT.
 */
int troupe_actor_lookup(struct troupe_actor *actor, const char *address, troupe_ref *ret);

/* The actor's own reference, and its own address, such as "group/0" or "@3", which is valid as long
 * as the actor. */
int troupe_actor_self(struct troupe_actor *actor, troupe_ref *ret);
const char *troupe_actor_address(const struct troupe_actor *actor);

/*
 * Gives the actor a further name, unique among groups, exchanges and names: -EEXIST. Configuration
 * that uses the name later takes it away. Deregistering returns 1, or 0 if the name was not
 * registered.
 */
int troupe_actor_register(struct troupe_actor *actor, const char *name);
int troupe_actor_deregister(struct troupe_actor *actor, const char *name);

/* ---- sending ---- */

/*
 * Content of a message and how to send it. All but struct_size may be zero. The macros below take
 * the type, and then members by name:
 *
 *     troupe_actor_tell(actor, to, "order", .text = "two of these", .key = "shop", .key_size = 4);
 *
 * Functions that end in _with take options that begin with TROUPE_MESSAGE_DEFAULTS. C++ has only
 * these.
 */
struct troupe_message_options {
    size_t struct_size;     /* sizeof(struct troupe_message_options) */
    const char *type;       /* NULL = "" */
    const void *data;       /* payload */
    size_t size;            /* of `data` */
    const char *text;       /* payload instead of `data`, without its NUL */
    const void *key;        /* routing key; NULL = none */
    size_t key_size;        /* at most 255 */
    uint64_t timeout_usec;  /* ask: 0 = 30 s, TROUPE_USEC_INFINITY = none */
    const char *reply_type; /* ask: ignores replies of other types; NULL = none */
    /* ask: stands in for the reply after a time-out. NULL = the time-out is an error. */
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

/* A pointer to such options, valid for one call. */
#define TROUPE_MESSAGE(...)                                                                        \
    (&(const struct troupe_message_options){.struct_size = sizeof(struct troupe_message_options),  \
                                            .type = __VA_ARGS__})

/*
 * int troupe_actor_tell(actor, to, type, …)
 *
 * Sends a message without expecting a reply. If it cannot be delivered, it becomes a dead letter.
 * Waits while the ring is full, or the recipient's mailbox with Overflow=block.
 */
int troupe_actor_tell_with(struct troupe_actor *actor, troupe_ref to,
                           const struct troupe_message_options *options);

/*
 * int troupe_actor_ask(actor, to, struct troupe_future **ret, type, …)
 *
 * Sends a message and returns a future for the reply, which the caller frees with
 * troupe_future_free(). The future fails with -ETIMEDOUT; -ENOENT: the actor is gone; -ENOBUFS: its
 * mailbox is full; -ECONNRESET: it died with the message in hand; -ENOSYS: it does not handle the
 * message; -EBUSY: too many open asks (an exchange counts each recipient); or with the handler's
 * errno, or that given to troupe_message_fail() (-EIO if not within 1 to 4095).
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

/* What happens to messages that arrive while a handler waits. */
enum troupe_await {
    TROUPE_AWAIT_STASH = 0, /* they wait until the handler returns */
    TROUPE_AWAIT_RUN = 1,   /* they are handled meanwhile, and may change the actor's state */
};

/* Waits until the future has ended. Returns 0 or its error. -EDEADLK: the actor asked itself, and
 * that message is stashed. */
int troupe_future_await(struct troupe_future *future, enum troupe_await mode);

/*
 * Waits up to `timeout_usec` until one has ended, and returns the lowest index of those that have.
 * -EAGAIN: none within that time.
 */
int troupe_future_await_any(struct troupe_future *const *futures, size_t count,
                            enum troupe_await mode, uint64_t timeout_usec);

/* Returns whether it has ended. Reads nothing new: troupe_future_await_any() does. */
bool troupe_future_done(const struct troupe_future *future);

/* Returns 0 or its error; -EAGAIN before it has ended. */
int troupe_future_error(struct troupe_future *future);

/* The reply, or "" and why it failed. Valid until troupe_future_free(). */
const char *troupe_future_type(const struct troupe_future *future);
const void *troupe_future_payload(const struct troupe_future *future, size_t *ret_size);
const char *troupe_future_reason(const struct troupe_future *future);
troupe_ref troupe_future_from(const struct troupe_future *future);
bool troupe_future_is_default(const struct troupe_future *future);

/* Calls `fn` once after the future has ended, where messages are handled, never from here. `fn` may
 * free the future. */
typedef void (*troupe_future_fn)(struct troupe_actor *actor, struct troupe_future *future,
                                 void *userdata);
void troupe_future_then(struct troupe_future *future, troupe_future_fn fn, void *userdata);

/*
 * Frees the future. An error that troupe_future_await() or _error() has not returned is passed to
 * troupe_actor_on_failure(), even if it occurs later. troupe_future_drop() ends the ask as well: it
 * reports no error, and a late reply becomes a dead letter.
 */
void troupe_future_free(struct troupe_future *future);
void troupe_future_drop(struct troupe_future *future);

/* Sets the function for these errors; without one the supervisor logs them. */
typedef void (*troupe_failure_fn)(struct troupe_actor *actor, int error, const char *reason,
                                  void *userdata);
void troupe_actor_on_failure(struct troupe_actor *actor, troupe_failure_fn fn, void *userdata);

/*
 * Calls `fn` whenever a call of this worker or client waits and a signal handler may have run: for
 * languages that handle signals later, and there. 0 lets the call wait on. A negative value ends it
 * with that error; what it has asked the supervisor for may still happen. `fn` may not use the
 * worker or client.
 */
typedef int (*troupe_signal_fn)(void *userdata);
void troupe_actor_on_signal(struct troupe_actor *actor, troupe_signal_fn fn, void *userdata);

/*
 * Calls `fn` where messages are handled, once after each crash of the supervisor. Another one has
 * taken over, and the actor keeps its address; it must again register names, subscribe, monitor and
 * set timers. An upgrade keeps all of these, and does not call `fn`.
 */
typedef void (*troupe_restart_fn)(struct troupe_actor *actor, void *userdata);
void troupe_actor_on_restart(struct troupe_actor *actor, troupe_restart_fn fn, void *userdata);

/* ---- handling ---- */

/* What a handler returns; or -errno, and the message becomes a dead letter of the error queue. */
enum troupe_handling {
    TROUPE_HANDLED = 0,
    TROUPE_NOT_HANDLED = 1, /* the message becomes a dead letter */
};

typedef int (*troupe_message_fn)(struct troupe_actor *actor, struct troupe_message *message,
                                 void *userdata);

/*
 * Sets the handler of messages of that type and of its descendants that have no nearer handler; ""
 * handles the rest. NULL removes it. A message without a handler becomes a dead letter.
 */
int troupe_actor_on_message(struct troupe_actor *actor, const char *type, troupe_message_fn fn,
                            void *userdata);

/* Has `fn` alone (NULL: nothing) handle all further messages; _default returns to the handlers by
 * type. */
void troupe_actor_become(struct troupe_actor *actor, troupe_message_fn fn, void *userdata);
void troupe_actor_become_default(struct troupe_actor *actor);

/* Calls `fn` whenever no message has come for so long; 0 = never. */
typedef void (*troupe_silence_fn)(struct troupe_actor *actor, void *userdata);
void troupe_actor_on_silence(struct troupe_actor *actor, uint64_t timeout_usec,
                             troupe_silence_fn fn, void *userdata);

/* ---- the message in hand: valid until its handler returns ---- */

const char *troupe_message_type(const struct troupe_message *message);
/* NULL = none. */
const void *troupe_message_key(const struct troupe_message *message, size_t *ret_size);
const void *troupe_message_payload(const struct troupe_message *message, size_t *ret_size);
/* TROUPE_NOBODY if it came from outside, or its timer's owner is gone. */
troupe_ref troupe_message_sender(const struct troupe_message *message);
uint64_t troupe_message_id(const struct troupe_message *message);
/* Since 1970. */
uint64_t troupe_message_sent_at(const struct troupe_message *message);
/* The timer that sent it, or 0. */
uint64_t troupe_message_timer(const struct troupe_message *message);
/* Whether a worker died with it in hand. */
bool troupe_message_is_redelivered(const struct troupe_message *message);

/* The handle for troupe_actor_reply(), which stays valid after the message; 0 = a tell. */
uint64_t troupe_message_ask(const struct troupe_message *message);

/*
 * Replies. The first reply of the type that the asker wants ends the ask. Later ones, and replies
 * to a tell, become dead letters.
 */
int troupe_message_reply(struct troupe_message *message, const char *type, const void *data,
                         size_t size);
int troupe_actor_reply(struct troupe_actor *actor, uint64_t ask, const char *type, const void *data,
                       size_t size);

/* Passes the message on with its sender and ask, and with its own or another key (NULL = none). The
 * handler then returns TROUPE_HANDLED. */
int troupe_message_forward(struct troupe_message *message, troupe_ref to);
int troupe_message_forward_with_key(struct troupe_message *message, troupe_ref to, const void *key,
                                    size_t key_size);

/* Sets the error and reason of a handler: `return troupe_message_fail(message, EACCES, "closed");`.
 * Returns a negative value. The asker gets the code as an errno. */
int troupe_message_fail(struct troupe_message *message, int code, const char *text);

/*
 * Puts the message aside: -EALREADY if it is. troupe_actor_unstash_all() has such messages handled
 * before all others, in their order, and returns their number. They survive a crash.
 */
int troupe_message_stash(struct troupe_message *message);
int troupe_actor_unstash_all(struct troupe_actor *actor);

/* ---- pausing and leaving ---- */

/*
 * A paused actor receives messages but handles none until it is resumed; jobs and replies go on. A
 * worker may pause itself, its cell with its places, and exchanges that it made: else -EPERM. A
 * client may pause all. -ENOENT: the actor is gone.
 */
int troupe_actor_pause(struct troupe_actor *actor, troupe_ref which);
int troupe_actor_resume(struct troupe_actor *actor, troupe_ref which);

/*
 * Ends a worker without a failure, unless within MinSec= of its start: after the current handler
 * troupe_worker_run() returns 0. Its successor, if Restart= allows one, gets what was not handled.
 * `reason`, at most 512 bytes, is for the death report. -EINVAL for a client.
 */
int troupe_actor_leave(struct troupe_actor *actor, const char *reason);

/* ---- monitors ---- */

/* Returns a future that ends when that actor is gone for good or has failed, at once if it is; its
 * payload is the cause, as text. Freeing the future ends the monitor. */
int troupe_actor_monitor(struct troupe_actor *actor, troupe_ref who, struct troupe_future **ret);

/* ---- timers: kept by the supervisor, also when this worker dies ---- */

/*
 * int troupe_actor_timer_after(actor, to, delay_usec, uint64_t *ret_id, type, …)
 * int troupe_actor_timer_at(actor, to, realtime_usec, uint64_t *ret_id, type, …)
 *
 * Sends a message after a delay, or at a time since 1970, and again after each `period_usec`;
 * missed times are skipped. `ret_id` NULL = not wanted. -EBUSY: the actor has 100,000 timers, or 64
 * MiB of their messages.
 */
int troupe_actor_timer_after_with(struct troupe_actor *actor, troupe_ref to, uint64_t delay_usec,
                                  uint64_t *ret_id, const struct troupe_message_options *options);
int troupe_actor_timer_at_with(struct troupe_actor *actor, troupe_ref to, uint64_t realtime_usec,
                               uint64_t *ret_id, const struct troupe_message_options *options);

/* Cancel one timer, or all of a type for a recipient. Return their number. A worker cancels only
 * timers that it or a predecessor in its place set, and those that send to itself. */
int troupe_actor_timer_cancel(struct troupe_actor *actor, uint64_t id);
int troupe_actor_timer_cancel_type(struct troupe_actor *actor, troupe_ref to, const char *type);

/* ---- exchanges: actors that forward to their subscribers ---- */

enum troupe_exchange_kind {
    TROUPE_EXCHANGE_SINGLE = 0,       /* to the last subscriber */
    TROUPE_EXCHANGE_TYPED_SINGLE = 1, /* to one subscriber per type, the nearest */
    TROUPE_EXCHANGE_TYPED_MULTI = 2,  /* to all who subscribed to the type or an ancestor */
    TROUPE_EXCHANGE_ROUTING_KEY = 3,  /* the same, if the keys are equal */
    TROUPE_EXCHANGE_PATTERN = 4,      /* the same; `*` is one dotted word, `#` any number */
};

/*
 * An exchange outlives its maker. -EEXIST: the name is taken; -EBUSY: the actor has 256 exchanges,
 * which together hold as much as one mailbox. A worker may delete only what it or a predecessor in
 * its place made: else -EPERM.
 */
int troupe_actor_exchange_new(struct troupe_actor *actor, const char *name,
                              enum troupe_exchange_kind kind, troupe_ref *ret);
int troupe_actor_exchange_delete(struct troupe_actor *actor, troupe_ref exchange);

/*
 * Subscribes this actor. `type` "" = all; `key` NULL = every key, or none. Unsubscribing takes the
 * same type and key, and returns 1, or 0 if this actor had no such subscription. -EPERM: this
 * actor's group may not subscribe; see MaySubscribe= in troupe.exchange(5).
 */
int troupe_actor_subscribe(struct troupe_actor *actor, troupe_ref exchange, const char *type,
                           const void *key, size_t key_size);
int troupe_actor_unsubscribe(struct troupe_actor *actor, troupe_ref exchange, const char *type,
                             const void *key, size_t key_size);

#ifdef __cplusplus
}
#endif

#endif
