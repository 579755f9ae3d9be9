/* SPDX-License-Identifier: MIT */
#include "worker/base/pending.h"

#include <errno.h>
#include <stdlib.h>

#define SIZE_FIRST UINT32_C(64)
#define SIZE_LAST  (UINT32_C(1) << 30)

static int grow(struct pending *pending)
{
    uint32_t size = pending->size == 0 ? SIZE_FIRST : pending->size * 2;
    struct pending_entry *entries;

    if (size > SIZE_LAST)
        return -ENOMEM;
    entries = reallocarray(pending->entries, size, sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    for (uint32_t i = pending->size; i < size; i++)
        entries[i] = (struct pending_entry){.next_free = i + 1};
    pending->entries = entries;
    pending->size = size;
    return 0;
}

int pending_take(struct pending *pending, uint64_t cookie, uint64_t *ret_number)
{
    struct pending_entry *entry;
    uint32_t index = pending->first_free;

    if (index == pending->size) {
        int r = grow(pending);

        if (r < 0)
            return r;
    }
    entry = &pending->entries[index];
    pending->first_free = entry->next_free;
    entry->cookie = cookie;
    entry->generation = (entry->generation + 1) & INT32_MAX;
    *ret_number = (uint64_t)entry->generation << 32 | index;
    return 0;
}

int pending_look(const struct pending *pending, uint64_t number, uint64_t *ret_cookie)
{
    uint32_t index = (uint32_t)number, generation = (uint32_t)(number >> 32);

    if (index >= pending->size || pending->entries[index].generation != generation ||
        generation % 2 == 0)
        return -EPROTO;
    *ret_cookie = pending->entries[index].cookie;
    return 0;
}

int pending_give(struct pending *pending, uint64_t number, uint64_t *ret_cookie)
{
    uint32_t index = (uint32_t)number;
    int r;

    r = pending_look(pending, number, ret_cookie);
    if (r < 0)
        return r;
    pending->entries[index].generation = (pending->entries[index].generation + 1) & INT32_MAX;
    pending->entries[index].next_free = pending->first_free;
    pending->first_free = index;
    return 0;
}

void pending_deinit(struct pending *pending)
{
    free(pending->entries);
    *pending = (struct pending){0};
}
