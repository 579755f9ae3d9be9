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
#include "worker/nats/waits.h"
#include "worker/troupe-query.h"
#include <poll.h>

#define STANDING_FDS 2

/* `up`, or because of `cause`. */
typedef void (*standing_fn)(void *userdata, bool up, const char *cause);

struct standing {
    const char *group;
    standing_fn changed;
    void *userdata;
    struct troupe_query *events, *query; /* NULL = not connected */
    bool asking;                         /* `query` has an answer to come */
    struct waits waits;                  /* what it has said so far */
    bool down;
    usec_t ask_at; /* USEC_INFINITY = once something happens */
    usec_t connect_at;
};

void standing_init(struct standing *standing, const char *group, standing_fn changed,
                   void *userdata);
void standing_deinit(struct standing *standing);

/* The supervisor has refused a job because of `cause`. Calls `changed` if that is new. */
void standing_set_down(struct standing *standing, const char *cause, usec_t now);

/* Goes on as far as possible without waiting. Returns when to call it again at the latest. */
usec_t standing_process(struct standing *standing, usec_t now);

/* Fills in what to wait for. */
void standing_fds(const struct standing *standing, struct pollfd fds[static STANDING_FDS]);
