/* SPDX-License-Identifier: MIT */
#include "tests/bench/load/pause.h"

#include <errno.h>
#include <time.h>

void pause_usec(uint64_t usec)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(usec / 1000000);
    until.tv_nsec += (long)(usec % 1000000) * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}
