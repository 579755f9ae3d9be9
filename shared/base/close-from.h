/* SPDX-License-Identifier: MIT */
#pragma once

/* Closes a range of descriptors, even where an old filter forbids close_range(2). */

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bounds the number of close() calls where RLIMIT_NOFILE is unlimited. */
#define CLOSE_FROM_MAX 1048576u

/* Closes all descriptors from `first` on. Async-signal-safe. */
static inline void close_from(unsigned first)
{
    struct rlimit limit = {.rlim_max = CLOSE_FROM_MAX};

    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    for (unsigned fd = first; fd < limit.rlim_max && fd < CLOSE_FROM_MAX; fd++)
        (void)close((int)fd);
}
