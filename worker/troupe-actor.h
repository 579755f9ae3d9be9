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
 * and asks other actors:
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
 * handler inline, not even for a message to the sender itself. When a worker dies, its successor
 * handles the messages that are left, in order; OnCrash= decides about the current one. All
 * functions may be called inside and outside of handlers, including job handlers. -EINVAL means a
 * malformed type, name or key.
 *
 * A type is a dotted name of at most 128 characters of [A-Za-z0-9._-]: "order" is the ancestor of
 * "order.created", and "" of all types. A key has up to 255 bytes; an empty key differs from no key
 * (NULL).
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

/* Permanently identifies an actor, even after its worker or the supervisor was restarted. Never
 * reused. */
typedef uint64_t troupe_ref;
#define TROUPE_NOBODY ((troupe_ref)0)

/*
 * Return the worker or client as an actor, which is valid as long as the worker or client. If job
 * handlers use the actor, call this before the first job.
 */
struct troupe_actor *troupe_worker_actor(struct troupe_worker *worker);
struct troupe_actor *troupe_client_actor(struct troupe_client *client);

/*
 * Handles at most one message (a worker: or job), and waits for it up to `timeout_usec`. A client's
 * messages are handled only here and in troupe_future_await(). Returns 1, 0 if nothing arrived or a
 * signal handler ran, or -ESHUTDOWN if the worker must stop.
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
 * Gives the actor a further name, unique among groups, exchanges and names: -EEXIST. If the
 * configuration uses the name later, the actor loses it. Deregistering returns 1, or 0 if the name
 * was not registered.
 */
int troupe_actor_register(struct troupe_actor *actor, const char *name);
int troupe_actor_deregister(struct troupe_actor *actor, const char *name);

/* ---- sending ---- */

/*
 * Content and options of a message. All members except struct_size may be zero. The macros below
 * take the type, and then members by name:
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
    /* ask: replaces the reply after a time-out. NULL = the time-out is an error. */
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
 * Waits while the ring is full, or with Overflow=block the recipient's mailbox.
 */
int troupe_actor_tell_with(struct troupe_actor *actor, troupe_ref to,
                           const struct troupe_message_options *options);

/*
 * int troupe_actor_ask(actor, to, struct troupe_future **ret, type, …)
 *
 * Sends a message and returns a future for the reply, which the caller frees with
 * troupe_future_free(). The future fails with -ETIMEDOUT; -ENOENT: the actor is gone; -ENOBUFS: its
 * mailbox is full; -ECONNRESET: it died while handling the message; -ENOSYS: it does not handle the
 * message; -EBUSY: too many open asks (an exchange counts each recipient); or with the errno that
 * the handler returned or gave to troupe_message_fail() (-EIO if not within 1 to 4095).
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

/* The treatment of messages that arrive while a handler waits. */
enum troupe_await {
    TROUPE_AWAIT_STASH = 0, /* they wait until the handler returns */
    TROUPE_AWAIT_RUN = 1,   /* they are handled, and may change the actor's state */
};

/* Waits until the future has ended. Returns 0 or its error. -EDEADLK: the actor asked itself, and
 * that message is stashed. */
int troupe_future_await(struct troupe_future *future, enum troupe_await mode);

/*
 * Waits up to `timeout_usec` until one has ended, and returns the lowest index of ended futures.
 * -EAGAIN: none within that time.
 */
int troupe_future_await_any(struct troupe_future *const *futures, size_t count,
                            enum troupe_await mode, uint64_t timeout_usec);

/* Returns whether it has ended. Unlike troupe_future_await_any(), reads no new messages. */
bool troupe_future_done(const struct troupe_future *future);

/* Returns 0 or its error; -EAGAIN before it has ended. */
int troupe_future_error(struct troupe_future *future);

/* The reply, or "" and the reason of the failure. Valid until troupe_future_free(). */
const char *troupe_future_type(const struct troupe_future *future);
const void *troupe_future_payload(const struct troupe_future *future, size_t *ret_size);
const char *troupe_future_reason(const struct troupe_future *future);
troupe_ref troupe_future_from(const struct troupe_future *future);
bool troupe_future_is_default(const struct troupe_future *future);

/* Calls `fn` once after the future has ended, where messages are handled, never inside this call.
 * `fn` may free the future. */
typedef void (*troupe_future_fn)(struct troupe_actor *actor, struct troupe_future *future,
                                 void *userdata);
void troupe_future_then(struct troupe_future *future, troupe_future_fn fn, void *userdata);

/*
 * Frees the future. An error that troupe_future_await() or _error() has not returned is passed to
 * troupe_actor_on_failure(), even if it occurs later. troupe_future_drop() also ends the ask: it
 * reports no error, and a late reply becomes a dead letter.
 */
void troupe_future_free(struct troupe_future *future);
void troupe_future_drop(struct troupe_future *future);

/* Sets the function for these errors; without one the supervisor logs them. */
typedef void (*troupe_failure_fn)(struct troupe_actor *actor, int error, const char *reason,
                                  void *userdata);
void troupe_actor_on_failure(struct troupe_actor *actor, troupe_failure_fn fn, void *userdata);

/*
 * Calls `fn`, for languages that handle signals later, whenever a signal handler may have run while
 * a call of this worker or client waits. If `fn` returns 0, the call continues to wait. A negative
 * value ends it with that error; its request to the supervisor may still take effect. `fn` must not
 * use the worker or client.
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

/* The return value of a handler; or -errno, which puts the message into the error queue. */
enum troupe_handling {
    TROUPE_HANDLED = 0,
    TROUPE_NOT_HANDLED = 1, /* the message becomes a dead letter */
};

typedef int (*troupe_message_fn)(struct troupe_actor *actor, struct troupe_message *message,
                                 void *userdata);

/*
 * Sets the handler of messages of that type and of its descendants without a more specific handler;
 * "" handles the rest. NULL removes it. A message without a handler becomes a dead letter.
 */
int troupe_actor_on_message(struct troupe_actor *actor, const char *type, troupe_message_fn fn,
                            void *userdata);

/* Makes only `fn` (NULL: nothing) handle all further messages; _default returns to the handlers by
 * type. */
void troupe_actor_become(struct troupe_actor *actor, troupe_message_fn fn, void *userdata);
void troupe_actor_become_default(struct troupe_actor *actor);

/* Calls `fn` whenever no message has arrived for `timeout_usec`; 0 = never. */
typedef void (*troupe_silence_fn)(struct troupe_actor *actor, void *userdata);
void troupe_actor_on_silence(struct troupe_actor *actor, uint64_t timeout_usec,
                             troupe_silence_fn fn, void *userdata);

/* ---- the current message: valid until its handler returns ---- */

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
/* Whether a worker died while handling it. */
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

/* Forwards the message with its sender and ask, and with its own or another key (NULL = none). The
 * handler then returns TROUPE_HANDLED. */
int troupe_message_forward(struct troupe_message *message, troupe_ref to);
int troupe_message_forward_with_key(struct troupe_message *message, troupe_ref to, const void *key,
                                    size_t key_size);

/* Sets the error and reason of a handler: `return troupe_message_fail(message, EACCES, "closed");`.
 * Returns a negative value. The asker gets the code as an errno. */
int troupe_message_fail(struct troupe_message *message, int code, const char *text);

/*
 * Puts the message aside; -EALREADY if it is stashed. troupe_actor_unstash_all() queues all stashed
 * messages before all others, in their order, and returns their number. They survive a crash.
 */
int troupe_message_stash(struct troupe_message *message);
int troupe_actor_unstash_all(struct troupe_actor *actor);

/* ---- pausing and leaving ---- */

/*
 * A paused actor receives messages but handles none until it is resumed; jobs and replies are not
 * affected. A worker may pause itself, its cell and that cell's workers, and exchanges that it
 * created: else -EPERM. A client may pause any actor. -ENOENT: the actor is gone.
 */
int troupe_actor_pause(struct troupe_actor *actor, troupe_ref which);
int troupe_actor_resume(struct troupe_actor *actor, troupe_ref which);

/*
 * Ends a worker without a failure, unless within MinSec= of its start: after the current handler
 * troupe_worker_run() returns 0. Its successor, if Restart= allows one, gets the messages that are
 * left. `reason`, at most 512 bytes, is for the death report. -EINVAL: the actor is a client.
 */
int troupe_actor_leave(struct troupe_actor *actor, const char *reason);

/* ---- monitors ---- */

/* Returns a future that ends when that actor is permanently gone or has failed, immediately if it
 * already has; its payload is the cause, as text. Freeing the future ends the monitor. */
int troupe_actor_monitor(struct troupe_actor *actor, troupe_ref who, struct troupe_future **ret);

/* ---- timers: kept by the supervisor, even if this worker dies ---- */

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

/* Cancel one timer, or all of a type for a recipient. Return their number. A worker can cancel only
 * timers that it or a predecessor in its slot set, and those that send to itself. */
int troupe_actor_timer_cancel(struct troupe_actor *actor, uint64_t id);
int troupe_actor_timer_cancel_type(struct troupe_actor *actor, troupe_ref to, const char *type);

/* ---- exchanges: actors that forward to their subscribers ---- */

enum troupe_exchange_kind {
    TROUPE_EXCHANGE_SINGLE = 0,       /* to the last subscriber */
    TROUPE_EXCHANGE_TYPED_SINGLE = 1, /* to one subscriber per type, the nearest */
    TROUPE_EXCHANGE_TYPED_MULTI = 2,  /* to all subscribers to the type or an ancestor */
    TROUPE_EXCHANGE_ROUTING_KEY = 3,  /* to those of them with an equal key or none */
    TROUPE_EXCHANGE_PATTERN = 4,      /* by key; `*` is one dotted word, `#` any number */
};

/*
 * An exchange outlives its creator. -EEXIST: the name is taken; -EBUSY: the actor has 256
 * exchanges, which together hold as much as one mailbox. A worker may delete only exchanges that it
 * or a predecessor in its slot created: else -EPERM.
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
