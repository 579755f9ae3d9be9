/* SPDX-License-Identifier: MIT */
#include "shared/base/clock.h"

static usec_t clock_read(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (usec_t)now.tv_sec * USEC_PER_SEC + (usec_t)now.tv_nsec / 1000;
}

usec_t clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

usec_t clock_cpu(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

usec_t clock_realtime(void)
{
    return clock_read(CLOCK_REALTIME);
}

/* Clocks that differ by less were not set, since they are not read at the same moment. */
#define SET (100 * USEC_PER_MSEC)

static usec_t steady_origin; /* clock_steady() when CLOCK_BOOTTIME was 0; 0 = not set yet */

usec_t clock_set_origin(usec_t origin)
{
    const usec_t now = clock_read(CLOCK_BOOTTIME);

    steady_origin = origin > 0 ? origin : usec_sub(clock_realtime(), now);
    return steady_origin;
}

usec_t clock_steady(void)
{
    if (steady_origin == 0)
        (void)clock_set_origin(0);
    return usec_add(steady_origin, clock_read(CLOCK_BOOTTIME));
}

usec_t clock_steady_to_realtime(usec_t date)
{
    const usec_t now = clock_steady(), realtime = clock_realtime();

    if (date == 0 || date == USEC_INFINITY ||
        usec_sub(now, realtime) + usec_sub(realtime, now) < SET)
        return date;
    return date > now ? usec_add(realtime, date - now) : usec_sub(realtime, now - date);
}

struct timespec usec_to_timespec(usec_t usec)
{
    return (struct timespec){
        .tv_sec = (time_t)(usec / USEC_PER_SEC),
        .tv_nsec = (long)(usec % USEC_PER_SEC * 1000),
    };
}
