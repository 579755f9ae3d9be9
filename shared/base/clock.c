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

usec_t clock_realtime(void)
{
    return clock_read(CLOCK_REALTIME);
}

struct timespec usec_to_timespec(usec_t usec)
{
    return (struct timespec){
        .tv_sec = (time_t)(usec / USEC_PER_SEC),
        .tv_nsec = (long)(usec % USEC_PER_SEC * 1000),
    };
}
