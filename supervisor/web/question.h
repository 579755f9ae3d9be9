/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Calls to the supervisor on behalf of browsers. The supervisor is called only when a browser asks.
 * No function waits: the loop of the program runs them.
 */

#include "shared/base/list.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/web/poller.h"

/* Connections to the supervisor at a time, beside streams. */
#define QUESTIONS_PENDING_MAX 32
/* How long the supervisor may take. */
#define QUESTIONS_TIMEOUT (5 * USEC_PER_SEC)

/* A question, embedded in the state of the one who asks. */
struct question {
    struct list node; /* linked while it is pending */
    struct questions *questions;
    struct varlink_client client;
    /* May be set before the question is asked: takes each reply of a call with "more". Returns 0,
     * or -errno, which ends the call. NULL = a call without "more". */
    int (*part)(struct question *question, const json_t *parameters);
    usec_t timeout;  /* may be changed before it is asked; USEC_INFINITY = none, for a stream */
    usec_t until;    /* when the time-out is over */
    bool unfinished; /* there may be replies that were read, but not taken */
    /* The outcome: a reply, which may be an error, or -errno in `failure`. */
    struct varlink_reply reply;
    int failure;
    usec_t at; /* monotonic */
    /* Called with the outcome. May be called before questions_ask() returns. */
    void (*done)(struct question *question);
};

struct questions {
    const char *socket; /* of the supervisor; borrowed */
    struct list pending;
    unsigned n_pending;
    bool stopped;
};

void questions_init(struct questions *questions, const char *socket);

/* Prepares a question that is not asked yet. Release it with question_deinit(). */
void question_init(struct question *question, void (*done)(struct question *question));
/* Ends it, if it is pending, without calling `done`. */
void question_deinit(struct question *question);

/* Asks; takes ownership of `parameters`. The failure is -EBUSY if too many calls are in progress.
 */
void questions_ask(struct questions *questions, struct question *question, const char *method,
                   json_t *parameters, usec_t now);

/* Returns whether the outcome is still to come. */
bool question_is_pending(const struct question *question);

/* Ends all pending and future questions with -ECANCELED. */
void questions_stop(struct questions *questions);

/* Call questions_prepare() before the loop waits, and questions_run() after it has waited. */
void questions_prepare(const struct questions *questions, struct poller *poller);
void questions_run(struct questions *questions, usec_t now);
