/* SPDX-License-Identifier: MIT */
#pragma once

/* The loop's epoll, for where io_uring is not available. Private to the loop.
 *
 * Descriptors are watched level-triggered and stay in the set until they are unwatched or paused.
 * Eventfds of peers are watched edge-triggered and never read, so nothing can block: each write
 * wakes, whatever the counter says. There are no words: peers are woken through descriptors. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <sys/epoll.h>

#define LOOP_EPOLL_EVENTS 128

struct loop_epoll {
    int fd;
    struct epoll_event events[LOOP_EPOLL_EVENTS]; /* fetched and not delivered yet */
    int n_events;
    usec_t fetched_at;    /* loop->now of the last look */
    struct list failed;   /* watches that the kernel refuses; reported in every turn */
    struct list short_of; /* watches that the kernel has no room for; not armed */
    usec_t retry_at;      /* when to try these again */
    bool no_pwait2;       /* epoll_pwait2(2) is not in this kernel, or forbidden */
};

/* 0 or -errno. */
int loop_epoll_init(struct loop_epoll *epoll);
