/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An actor: what it has received and not handled yet, who handles it, and what it has been
 * promised.
 *
 * A message holds the ring until its handler is done with it, so that the supervisor finds what a
 * dead worker had not handled. Where the ring must go on before that (a handler waits, and the
 * answer comes behind other messages; the program puts a message aside), the supervisor is told to
 * keep a shadow of the message first: STASHED, until its end.
 */

#include "shared/base/clock.h"
#include "worker/actor/future.h"
#include "worker/actor/handlers.h"
#include "worker/actor/mail.h"
#include "worker/base/carrier.h"

struct troupe_actor {
    struct carrier *carrier;
    const char *address; /* borrowed from the worker or client */
    bool used;           /* the program has asked for it */
    struct handlers handlers;
    bool became;
    troupe_message_fn behaviour; /* while `became`; NULL: drops all */
    void *behaviour_userdata;
    struct list queue; /* to be handled, in this order */
    struct list stash;
    struct list held;    /* messages that hold the ring, in its order */
    struct list endings; /* futures whose callback is to be called */
    struct troupe_message *in_hand;
    struct futures futures;
    bool pinned; /* the ring is held from `pin` on for a job whose payload lies there */
    uint32_t pin;
    bool easing;
    troupe_ref self;            /* TROUPE_NOBODY = not asked for yet */
    uint64_t n_received;        /* records */
    uint32_t seen_control;      /* of actor_control_changed() */
    usec_t silence, silence_at; /* USEC_INFINITY: nobody waits for that */
    troupe_silence_fn on_silence;
    void *silence_userdata;
    troupe_failure_fn on_failure;
    void *failure_userdata;
};

/* `address` and `carrier` outlive the actor. */
void actor_init(struct troupe_actor *actor, struct carrier *carrier, const char *address);
void actor_deinit(struct troupe_actor *actor);

/* What the supervisor says now, bits of enum memory_control. */
uint32_t actor_control(const struct troupe_actor *actor);
/* Whether that is STOP, and whether messages may be handled: neither STOP nor PAUSE. */
bool actor_stopped(const struct troupe_actor *actor);
bool actor_may_handle(const struct troupe_actor *actor);
/* Whether the supervisor has said something else since this was asked last. */
bool actor_control_changed(struct troupe_actor *actor);

/* Whether a record of this kind (and for FOUND and REFUSED: this body) is for actor_receive(). */
bool actor_takes(const struct ring_record *record);

/*
 * Takes a record in, without handling it. `begin` is where the inbox's cursor stood before it. 0,
 * -EPROTO for what cannot be understood, -ENOMEM.
 */
int actor_receive(struct troupe_actor *actor, const struct ring_record *record, uint32_t begin);

/*
 * Handles what comes next, one thing: the end of a future, or a message. 1, 0 when there is nothing
 * or it may not be handled now, or a negative errno of telling the supervisor.
 */
int actor_run(struct troupe_actor *actor);

/* How long to wait for messages until actor_silent(), at most `timeout`. */
usec_t actor_patience(const struct troupe_actor *actor, usec_t timeout);
/* When silence has lasted for long enough, calls who wants to know. Whether it did. */
bool actor_silent(struct troupe_actor *actor);

/* Has the supervisor keep that message (NULL: nothing happens), so that the ring can go on. */
int actor_shadow(struct troupe_actor *actor, struct troupe_message *message);

/*
 * The same for all, when they hold too much of the ring for answers to get through. 0, -ENOBUFS
 * when a job's payload is in the way, or as carrier's reserve.
 */
int actor_ease(struct troupe_actor *actor);

/* Makes the inbox hold what it must from here on. */
void actor_hold(struct troupe_actor *actor);
/* Gives back what nothing holds. */
void actor_release(struct troupe_actor *actor);

/*
 * What follows from the end of a future is noted, and done later by actor_ending(): the program's
 * callback, or what becomes of one that the program has let go of.
 */
void actor_future_ended(struct troupe_actor *actor, struct troupe_future *future);
void actor_ending(struct troupe_actor *actor, struct troupe_future *future);

/*
 * Waits for the supervisor's answer to a request, unless sending it failed with `sent`, and frees
 * its future. Returns 0 or -errno. `ret_value` NULL: the value does not matter.
 */
int future_answer(struct troupe_future *future, int sent, uint64_t *ret_value);

/* ---- records to the supervisor (actor-send.c) ---- */

int send_stash(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t message,
               uint32_t flags);
int send_verdict(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t message,
                 int code, const char *text);
/* `type` NULL = "". Returns 0 or -EINVAL. */
int send_topic(struct topic *ret, const char *type, const void *key, size_t key_size);

int send_by_reference(struct troupe_actor *actor, enum protocol_actor_kind kind, uint64_t cookie,
                      uint64_t reference);
