/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of io.troupe.Actors. */

#include "shared/protocol/protocol.h"
#include "supervisor/control/access.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/router.h"
#include "supervisor/varlink/request.h"
#include <stdbool.h>
#include <stdint.h>

struct dead_letter;
struct exchange_subscription;

#define CONTROL_TYPE_ALLOWED "a dotted name of at most 128 characters of A-Z a-z 0-9 . _ -"

/* Takes "type" (default: empty) and "key" of the call. On false, an error has been sent. */
bool control_take_topic(struct request *request, struct topic *ret);

/* NULL = NoSuchActor has been sent. */
struct actor *control_find_actor(struct request *request, const char *name);
/* Replies with NoSuchActor. */
void control_refuse_actor(struct request *request, const char *name);
/* NULL = NoSuchExchange has been sent. */
struct actor *control_find_exchange(struct request *request, const char *name);

/* Replies with the error of a routing result: ROUTER_E_* or -errno. */
void control_refuse_routing(struct request *request, const char *to, int result);
/* Returns the sentence for a routing result; static. */
const char *control_routing_text(int result);

/* Types of io.troupe.Actors as JSON; see report.h. `key` NULL inside an array. */
void report_actor(struct reply *reply, const char *key, const struct actor *actor);
void report_topic(struct reply *reply, const struct topic *topic); /* the members of an object */
void report_exchange(struct reply *reply, const struct actor *actor);
void report_subscription(struct reply *reply, const struct actor *exchange,
                         const struct exchange_subscription *subscription);
/* Whole: with payload and death reports, as far as there is room for them. */
void report_dead_letter(struct reply *reply, const char *key, const struct request *request,
                        const struct dead_letter *letter, bool whole);

/* Dead letters of durable jobs, while they are still to be read from disk after a start. */

struct request;

/* Whether the call has to wait for them. Then its method is called again once they have been read,
 * or cannot be; or an error has been sent. */
bool control_await_letters(struct request *request);

/* ---- requeue.c ---- */

/*
 * Sends dead letters again: messages to their recipient with their sender, dead jobs as new jobs. A
 * letter that cannot be sent stays.
 */

struct control_context;

/* Letters that are sent, and what has become of them. A dead job that is sent to a durable group is
 * pending until the new job is on disk, in the transaction that removes the letter. */
struct requeue {
    struct control_context *context;
    const char *to; /* address; NULL = the recipient of each. Borrowed */
    uint64_t n_requeued, n_failed;
    char problem[256];          /* why the last one failed */
    char job[PROTOCOL_ID_TEXT]; /* the new id of the last job */
    struct list pending;
    /* Called when nothing is pending any more; may free the requeue. */
    void (*settled)(struct requeue *requeue);
};

void requeue_init(struct requeue *requeue, struct control_context *context, const char *to);
/* Does not stop pending requeues. */
void requeue_deinit(struct requeue *requeue);

/* Sends a letter, and frees it unless that fails. settled() is not called from within. */
void requeue_letter(struct requeue *requeue, struct dead_letter *letter);

static inline bool requeue_is_pending(const struct requeue *requeue)
{
    return !list_empty(&requeue->pending);
}
