/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Calls to the supervisor on behalf of browsers. A question that many ask is sent once: who asks
 * the same while the reply is on its way, or within a second after it was asked for, gets that one.
 * Nothing is sent unless somebody asks. Nothing waits: the loop of the program runs them.
 */

#include "shared/base/list.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/web/poller.h"

/* Connections to the supervisor at a time, and questions that are remembered. */
#define QUESTIONS_PENDING_MAX 16
#define QUESTIONS_MAX         64
/* How long a reply is good after it was asked for: a browser that asks each second finds it to be
 * over. And how long the supervisor may take. */
#define QUESTIONS_GOOD    (950 * USEC_PER_MSEC)
#define QUESTIONS_TIMEOUT (5 * USEC_PER_SEC)

/* Adds a reply of several to those before it, in `whole`, an empty object at first. 0 or -ENOMEM.
 */
typedef int (*question_join_fn)(json_t *whole, const json_t *part);

/* What came of it: the reply, which may be an error, or -errno in `failure`. */
struct outcome {
    usec_t at; /* monotonic */
    int failure;
    struct varlink_reply reply;
};

/* Whoever waits for an outcome. `node` is linked until then; unlink it to wait no longer. */
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
/* Nobody may wait any more. */
void questions_deinit(struct questions *questions);

struct question_options {
    const char *method;
    json_t *parameters;    /* borrowed */
    bool shared;           /* looks only: may be answered by what another browser got */
    question_join_fn join; /* not NULL: calls with "more" */
};

/* Asks. Without success the waiter gets -EBUSY: too many calls are on their way. */
void questions_ask(struct questions *questions, const struct question_options *options, usec_t now,
                   struct waiter *waiter);

/* Ends all that are on their way, and those that are asked from now on, with -ECANCELED. */
void questions_stop(struct questions *questions);

/* Before and after the loop waits. */
void questions_prepare(const struct questions *questions, struct poller *poller);
void questions_run(struct questions *questions, usec_t now);
