/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whether the group does jobs on this machine at all: it does not while it has failed, is stopped,
 * drained or removed, or cannot write durable jobs.
 * Asks every second what the group waits for.
 */

#include "shared/base/clock.h"
#include "worker/troupe-query.h"
#include <stdbool.h>

/* What records of type Wait in troupe-varlink(7) say about a group or a job, as far as it decides
 * whether this machine gives messages back. */

struct obstacles {
    bool closed;    /* new jobs are refused */
    bool draining;  /* new jobs are refused, and the queue is worked off */
    bool busy;      /* all workers are busy, and will take jobs from the queue */
    bool down;      /* no job begins until an administrator acts */
    bool absent;    /* no worker is up */
    bool coming;    /* a worker will be up without help */
    char cause[32]; /* the first important one, for messages */
};

/* clang-format off */
#define OBSTACLES_NULL {.cause = ""}
/* clang-format on */

void obstacles_note(struct obstacles *obstacles, const char *cause);

/* Returns whether a waiting job will not be done here. */
bool obstacles_are_lasting(const struct obstacles *obstacles);

/* `up`, or because of `cause`. */
typedef void (*availability_fn)(void *userdata, bool up, const char *cause);

struct availability {
    const char *group;
    availability_fn changed;
    void *userdata;
    struct troupe_query *query; /* NULL = not connected */
    bool asking;                /* `query` awaits an answer */
    struct obstacles obstacles; /* from the part of the answer that has arrived */
    bool down;
    usec_t ask_at;
};

void availability_init(struct availability *availability, const char *group,
                       availability_fn changed, void *userdata);
void availability_deinit(struct availability *availability);

/* The supervisor has refused a job because of `cause`. Calls `changed` if that is new. */
void availability_set_down(struct availability *availability, const char *cause, usec_t now);

/* Does everything that is possible without waiting. Returns when to call it again at the latest. */
usec_t availability_process(struct availability *availability, usec_t now);

/* -1 = there is nothing to wait for. */
int availability_fd(const struct availability *availability);
