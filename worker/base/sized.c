/* SPDX-License-Identifier: MIT */
#include "worker/base/sized.h"

#include <errno.h>
#include <string.h>

/* No struct grows beyond this: a larger size is uninitialized memory. */
#define SIZE_MAX_SANE 4096u

static size_t size_of(const void *given)
{
    size_t size;

    memcpy(&size, given, sizeof(size));
    return size;
}

int sized_check(const void *given, size_t size_min)
{
    size_t size = size_of(given);

    if (size < size_min)
        return -EINVAL;
    return size > SIZE_MAX_SANE ? -E2BIG : 0;
}

static int check_unknown(const char *given, size_t size)
{
    for (size_t i = size; i < size_of(given); i++)
        if (given[i] != 0)
            return -E2BIG;
    return 0;
}

int sized_take(const void **given, void *room, size_t size, size_t size_min)
{
    size_t given_size;
    int r;

    if (!*given) {
        *given = room;
        return 0;
    }
    given_size = size_of(*given);
    if (given_size == size)
        return 0;
    r = sized_check(*given, size_min);
    if (r == 0)
        r = check_unknown(*given, size);
    if (r < 0)
        return r;
    memcpy(room, *given, given_size < size ? given_size : size);
    *given = room;
    return 0;
}

void sized_give(void *given, const void *from, size_t size)
{
    size_t given_size = size_of(given);

    memcpy(given, from, given_size < size ? given_size : size);
    if (given_size > size)
        memset((char *)given + size, 0, given_size - size);
    memcpy(given, &given_size, sizeof(given_size));
}
