/* SPDX-License-Identifier: MIT */
#pragma once

/* The descriptors and the time for which one turn of the loop waits. All are bounded elsewhere. */

#include "shared/base/clock.h"
#include <poll.h>
#include <stddef.h>

#define POLLER_MAX ((size_t)128)

struct poller {
    struct pollfd items[POLLER_MAX];
    size_t n;
    usec_t deadline; /* monotonic; USEC_INFINITY = none */
};

static inline void poller_reset(struct poller *poller)
{
    poller->n = 0;
    poller->deadline = USEC_INFINITY;
}

/* Returns the place for poller_events(); POLLER_MAX if there is no room. */
static inline size_t poller_add(struct poller *poller, int fd, short events)
{
    if (poller->n == POLLER_MAX)
        return POLLER_MAX;
    poller->items[poller->n] = (struct pollfd){.fd = fd, .events = events};
    return poller->n++;
}

/* Waits at most until `time`. */
static inline void poller_until(struct poller *poller, usec_t time)
{
    if (time < poller->deadline)
        poller->deadline = time;
}

static inline short poller_events(const struct poller *poller, size_t place)
{
    return place < poller->n ? poller->items[place].revents : 0;
}
