/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whether the group does jobs on this machine at all: it does not while it has failed, is stopped,
 * drained or removed, or cannot write durable jobs.
 *
 * Hears of events of the group, and asks what it waits for when something may have changed; while
 * it does no jobs, also from time to time.
 */

#include "shared/base/clock.h"
#include "worker/troupe-query.h"
#include <poll.h>
#include <stdbool.h>

/* What keeps jobs from beginning, as far as it tells whether this machine gives up: what records of
 * type Wait in troupe-varlink(7) say of a group or a job. */

struct obstacles {
    bool closed;    /* new jobs are not taken */
    bool draining;  /* nor are they, and only what is in the queue is worked off */
    bool busy;      /* all workers are; they take what is in the queue */
    bool down;      /* no job is begun until somebody does something */
    bool absent;    /* no worker is up */
    bool coming;    /* one will be, by itself */
    char cause[32]; /* the first that counts, for people */
};

/* clang-format off */
#define OBSTACLES_NULL {.cause = ""}
/* clang-format on */

void obstacles_note(struct obstacles *obstacles, const char *cause);

/* Whether a job that waits will not be done here. */
bool obstacles_are_lasting(const struct obstacles *obstacles);
/* Like obstacles_are_lasting(), but also true if new jobs are not taken. */
bool obstacles_to_new_jobs(const struct obstacles *obstacles);

#define AVAILABILITY_FDS 2

/* `up`, or because of `cause`. */
typedef void (*availability_fn)(void *userdata, bool up, const char *cause);

struct availability {
    const char *group;
    availability_fn changed;
    void *userdata;
    struct troupe_query *events, *query; /* NULL = not connected */
    bool asking;                         /* `query` has an answer to come */
    struct obstacles obstacles;          /* what it has said so far */
    bool down;
    usec_t ask_at; /* USEC_INFINITY = once something happens */
    usec_t connect_at;
};

void availability_init(struct availability *availability, const char *group,
                       availability_fn changed, void *userdata);
void availability_deinit(struct availability *availability);

/* The supervisor has refused a job because of `cause`. Calls `changed` if that is new. */
void availability_set_down(struct availability *availability, const char *cause, usec_t now);

/* Goes on as far as possible without waiting. Returns when to call it again at the latest. */
usec_t availability_process(struct availability *availability, usec_t now);

/* Fills in what to wait for. */
void availability_fds(const struct availability *availability,
                      struct pollfd fds[static AVAILABILITY_FDS]);
