/* SPDX-License-Identifier: MIT */

/* Parses decimal numbers. */

#include "worker/examples/orchestrate/orchestrate.h"
#include <errno.h>
#include <stdlib.h>

int orchestrate_number(const char *text, uint64_t *ret)
{
    char *end;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno != 0 || *end != '\0' ? -EINVAL : 0;
}
