/* SPDX-License-Identifier: MIT */

/* Parses Size=: a number of workers, or a share of the processors. */

#include "supervisor/config/syntax/values.h"
#include <sched.h>
#include <unistd.h>

#define PERCENT_MAX 1000u

/* The processors that this process may use; all online ones if a cpu_set_t is too small. */
static uint64_t count_processors(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (uint64_t)CPU_COUNT(&set);
    return online > 0 ? (uint64_t)online : 1;
}

int values_workers(const char *text, uint64_t *ret)
{
    uint64_t percent, number;
    int r = values_percent(text, &percent);

    if (r == VALUES_E_INVALID)
        return values_count(text, ret);
    if (r != 0 || percent == 0 || percent > PERCENT_MAX)
        return VALUES_E_RANGE;
    number = count_processors() * percent / 100;
    *ret = number > 0 ? number : 1;
    return 0;
}
