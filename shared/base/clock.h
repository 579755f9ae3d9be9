/* SPDX-License-Identifier: MIT */
#pragma once

/* Time. Code that waits or measures takes `now` as an argument, so that tests can set it; only the
 * event loop and the entry points of the library ask the kernel. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

typedef uint64_t usec_t; /* microseconds */

#define NSEC_PER_USEC ((usec_t)1000)
#define USEC_PER_MSEC ((usec_t)1000)
#define USEC_PER_SEC  ((usec_t)1000000)
#define USEC_INFINITY UINT64_MAX

/* CLOCK_MONOTONIC; never fails. */
usec_t clock_now(void);

/* CPU time of this thread; a system call. */
usec_t clock_cpu(void);

/* CLOCK_REALTIME since 1970; for display and records, not for waiting. */
usec_t clock_realtime(void);

/*
 * A clock for the ends of durations: close to CLOCK_REALTIME when it starts, but setting the clock
 * does not change it, and it counts while the machine sleeps. It is CLOCK_BOOTTIME plus an origin.
 */

/* Sets the origin, in microseconds since 1970: that of an earlier process of the same boot, whose
 * dates then stay valid, or 0 for a new one. Returns the origin. Call it before clock_steady(), and
 * before there are other threads. */
usec_t clock_set_origin(usec_t origin);

/* The clock, in microseconds since 1970. Sets a new origin if there is none. */
usec_t clock_steady(void);

/* Converts a date of clock_steady() to CLOCK_REALTIME as it is set now; keeps 0 and
 * USEC_INFINITY. */
usec_t clock_steady_to_realtime(usec_t date);

/* a + b; USEC_INFINITY instead of an overflow. */
static inline usec_t usec_add(usec_t a, usec_t b)
{
    return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}

static inline usec_t usec_min(usec_t a, usec_t b)
{
    return a < b ? a : b;
}

static inline usec_t usec_clamp(usec_t value, usec_t min, usec_t max)
{
    return value < min ? min : usec_min(value, max);
}

/* a - b; 0 instead of an underflow. USEC_INFINITY - b is USEC_INFINITY. */
static inline usec_t usec_sub(usec_t a, usec_t b)
{
    if (a == USEC_INFINITY)
        return USEC_INFINITY;
    return a > b ? a - b : 0;
}

static inline usec_t usec_of_timeval(struct timeval time)
{
    return (usec_t)time.tv_sec * USEC_PER_SEC + (usec_t)time.tv_usec;
}

/* Converts a span to seconds and nanoseconds. */
struct timespec usec_to_timespec(usec_t usec);

/* The monotonic time at which a time-out that begins now ends, and the time left until then.
 * Neither makes a system call for USEC_INFINITY. */
static inline usec_t clock_deadline(usec_t timeout)
{
    return timeout == USEC_INFINITY ? timeout : usec_add(clock_now(), timeout);
}

static inline usec_t clock_left(usec_t deadline)
{
    return deadline == USEC_INFINITY ? deadline : usec_sub(deadline, clock_now());
}

/* ---- rates ---- */

/* Limits how often something happens per second, such as log lines that other processes can
 * cause. */
struct rate {
    usec_t since;
    unsigned n;
    unsigned left_out; /* since the last one that was admitted */
};

/* clang-format off */
#define RATE_NULL {0}
/* clang-format on */

/* Returns whether this event is within `max` per second. If so, `*ret_left_out` (may be NULL) is
 * the number of events left out before it. */
static inline bool rate_take(struct rate *rate, usec_t now, unsigned max, unsigned *ret_left_out)
{
    if (now - rate->since >= USEC_PER_SEC) {
        rate->since = now;
        rate->n = 0;
    }
    if (rate->n >= max) {
        rate->left_out++;
        return false;
    }
    rate->n++;
    if (ret_left_out)
        *ret_left_out = rate->left_out;
    rate->left_out = 0;
    return true;
}
