/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An actor: received messages, their handlers, and futures.
 *
 * The inbox is not released past a message until its handler is done, so the supervisor finds the
 * messages that a dead worker has not handled. If the inbox must be released earlier (a handler
 * waits for an answer behind other messages, or the program stashes a message), a STASHED record
 * first makes the supervisor keep a copy, the shadow of the message.
 */

#include "shared/base/clock.h"
#include "worker/actor/future.h"
#include "worker/actor/handlers.h"
#include "worker/base/carrier.h"
#include "worker/base/content.h"

enum mail_stage {
    MAIL_WAITING, /* in the actor's queue */
    MAIL_IN_HAND,
    MAIL_STASHED, /* by the program */
    MAIL_DONE,    /* its end was reported */
};

/* A received message, copied out of the ring, until it is handled. */
struct troupe_message {
    struct list link;      /* in the actor's queue or stash */
    struct list held_link; /* in the actor's list of those that hold the inbox */
    struct troupe_actor *actor;
    struct troupe_message *outer; /* its handler waits while this one is handled */
    struct protocol_message wire; /* without its content, which the ring may have lost */
    struct content content;
    int error;           /* of content_place(): no handler gets the message */
    uint32_t begin, end; /* cursors around it in the inbox */
    enum mail_stage stage;
    bool shadowed; /* the supervisor keeps a copy */
    bool failed;   /* troupe_message_fail() set code and text */
    int code;
    char *text;
    _Alignas(8) char bytes[];
};

/* Unlinks and frees a message. */
void mail_free(struct troupe_message *message);

struct troupe_actor {
    struct carrier *carrier;
    const char *address; /* borrowed from the worker or client */
    bool used;           /* by the program */
    struct handlers handlers;
    bool became;
    troupe_message_fn behaviour; /* while `became`; NULL = handles nothing */
    void *behaviour_userdata;
    struct list queue;   /* messages to handle, in this order */
    struct list stash;   /* messages put aside by the program */
    struct list held;    /* messages that hold the inbox, in its order */
    struct list endings; /* futures whose end has consequences, see actor_ending() */
    struct troupe_message *in_hand;
    struct futures futures;
    bool pinned; /* a job's payload holds the inbox from `pin` on */
    uint32_t pin;
    bool easing;
    troupe_ref self;            /* TROUPE_NOBODY = unknown yet */
    uint64_t n_received;        /* records, and futures that ended without one */
    uint32_t seen_control;      /* of actor_control_changed() */
    usec_t silence, silence_at; /* USEC_INFINITY = not wanted */
    troupe_silence_fn on_silence;
    void *silence_userdata;
    troupe_failure_fn on_failure;
    void *failure_userdata;
    bool restarted; /* on_restart is due */
    troupe_restart_fn on_restart;
    void *restart_userdata;
};

/* `address` and `carrier` outlive the actor. */
void actor_init(struct troupe_actor *actor, struct carrier *carrier, const char *address);
void actor_deinit(struct troupe_actor *actor);

/* Returns the supervisor's control word: bits of enum memory_control. */
uint32_t actor_control(const struct troupe_actor *actor);
bool actor_stopped(const struct troupe_actor *actor);
/* Returns whether the actor is neither stopped nor paused. */
bool actor_may_handle(const struct troupe_actor *actor);
/* Returns whether the control word has changed since the last call. */
bool actor_control_changed(struct troupe_actor *actor);

/* Returns whether a record is for actor_receive(). */
bool actor_takes(const struct ring_record *record);

/*
 * Copies a record out of the inbox, without handling it. `begin`: the inbox's cursor before it.
 * Returns 0, -EPROTO or -ENOMEM.
 */
int actor_receive(struct troupe_actor *actor, const struct ring_record *record, uint32_t begin);

/*
 * Handles the next ended future or message. Returns 1, 0 if there is none or it may not be handled
 * now, or -errno if a report to the supervisor fails.
 */
int actor_run(struct troupe_actor *actor);

/* Shortens a time-out so that a wait ends when actor_silent() is due. */
usec_t actor_patience(const struct troupe_actor *actor, usec_t timeout);
/* Calls `on_silence` if it is due. Returns whether it was. */
bool actor_silent(struct troupe_actor *actor);

/* Makes the supervisor keep a shadow of the message (NULL: does nothing). Returns 0 or -errno. */
int actor_shadow(struct troupe_actor *actor, struct troupe_message *message);

/*
 * Shadows all messages if they hold so much of the inbox that answers might not get through.
 * Returns 0, -ENOBUFS if a job's payload is in the way, or another -errno.
 */
int actor_ease(struct troupe_actor *actor);

/* Updates the position up to which the inbox may be released. */
void actor_hold(struct troupe_actor *actor);
/* Like actor_hold(), but also releases the inbox. */
void actor_release(struct troupe_actor *actor);

/* Queues the consequences of a future's end: a callback, or the report of an error. */
void actor_future_ended(struct troupe_actor *actor, struct troupe_future *future);
/* Runs the consequences of a future's end. */
void actor_ending(struct troupe_actor *actor, struct troupe_future *future);

/*
 * Fails with -ECONNRESET the waiting futures that were sent before position `read` of the carrier:
 * they can no longer be answered, except those that the next supervisor has `kept` (enum
 * memory_kept).
 */
void actor_lose(struct troupe_actor *actor, uint64_t read, uint32_t kept);
/* Another supervisor has taken over: `on_restart` is called where messages are handled, unless all
 * that the actor has set up is `kept`. */
void actor_restarted(struct troupe_actor *actor, uint32_t kept);

/*
 * Waits for the supervisor's answer to a request, unless sending it failed with `sent`, and frees
 * its future. Returns 0 or -errno. `ret_value` NULL = not wanted.
 */
int future_answer(struct troupe_future *future, int sent, uint64_t *ret_value);

/* ---- records to the supervisor (local-actor-send.c) ---- */

int send_stash(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t message,
               uint32_t flags);
/* `text` NULL = that of the errno `code`. */
int send_verdict(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t message,
                 int code, const char *text);
/* `type` NULL = "". Returns 0 or -EINVAL. */
int send_topic(struct topic *ret, const char *type, const void *key, size_t key_size);

int send_by_reference(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t cookie,
                      uint64_t reference);
