/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Calls to the supervisor on behalf of browsers. A question of several browsers is sent once: one
 * that equals a pending question, or one sent within the last second, gets the same reply. The
 * supervisor is called only when a browser asks. No function waits: the loop of the program runs
 * them.
 */

#include "shared/base/list.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/web/poller.h"

/* Connections to the supervisor at a time, and questions that are remembered. */
#define QUESTIONS_PENDING_MAX 16
#define QUESTIONS_MAX         64
/* How long a reply is valid after its call, so that a browser that asks each second gets a new one;
 * and how long the supervisor may take. */
#define QUESTIONS_GOOD    (950 * USEC_PER_MSEC)
#define QUESTIONS_TIMEOUT (5 * USEC_PER_SEC)

/* Adds one of several replies to the previous ones in `whole`, first an empty object. 0 or -ENOMEM.
 */
typedef int (*question_join_fn)(json_t *whole, const json_t *part);

/* The outcome of a question: the reply, which may be an error, or -errno in `failure`. */
struct outcome {
    usec_t at; /* monotonic */
    int failure;
    struct varlink_reply reply;
};

/* A waiter for an outcome. `node` is linked until then; unlink it to wait no longer. */
struct waiter {
    struct list node;
    /* The outcome is borrowed. May be called before questions_ask() returns. */
    void (*done)(struct waiter *waiter, const struct outcome *outcome);
};

struct questions {
    const char *socket; /* of the supervisor; borrowed */
    struct list all;
    unsigned n, n_pending;
    bool stopped;
};

void questions_init(struct questions *questions, const char *socket);
/* There must be no waiters. */
void questions_deinit(struct questions *questions);

struct question_options {
    const char *method;
    json_t *parameters;    /* borrowed */
    bool shared;           /* only reads: may be answered with another browser's reply */
    question_join_fn join; /* not NULL: calls with "more" */
};

/* Asks. The waiter gets -EBUSY if too many calls are in progress. */
void questions_ask(struct questions *questions, const struct question_options *options, usec_t now,
                   struct waiter *waiter);

/* Ends all pending and future questions with -ECANCELED. */
void questions_stop(struct questions *questions);

/* Before and after the loop waits. */
void questions_prepare(const struct questions *questions, struct poller *poller);
void questions_run(struct questions *questions, usec_t now);
