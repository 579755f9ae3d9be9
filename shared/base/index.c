/* SPDX-License-Identifier: MIT */
#include "shared/base/index.h"

#include "shared/base/hash.h"
#include <assert.h>
#include <stdlib.h>

#define PLACES_MIN 8u

static uint32_t power_below(uint32_t n)
{
    return UINT32_C(1) << (31 - __builtin_clz(n));
}

/* Linear hashing: buckets below the split point have been split. */
static struct index_entry **place_of(struct index *index, uint64_t key)
{
    const uint32_t n = index->n_more + 1, power = power_below(n);
    const uint32_t hash = (uint32_t)hash_mix(key ^ hash_secret());
    uint32_t i = hash & (2 * power - 1);

    if (i >= n)
        i &= power - 1;
    return i == 0 ? &index->first : &index->more[i - 1];
}

static void put(struct index_entry **place, struct index_entry *entry)
{
    entry->prev = NULL;
    entry->next = *place;
    if (*place)
        (*place)->prev = entry;
    *place = entry;
}

/* Adds a bucket, and moves to it some entries of the bucket that it splits. */
static void index_grow(struct index *index)
{
    const uint32_t n = index->n_more + 1, split = n & (power_below(n) - 1);
    struct index_entry **place, *entry, *next;

    if (index->n_more == index->n_allocated) {
        const uint32_t wanted = index->n_allocated ? 2 * index->n_allocated : PLACES_MIN;
        struct index_entry **more =
            wanted > UINT32_MAX / 4 ? NULL : realloc(index->more, wanted * sizeof(*more));

        if (!more)
            return;
        index->more = more;
        index->n_allocated = wanted;
    }
    index->more[index->n_more++] = NULL;
    place = split == 0 ? &index->first : &index->more[split - 1];
    entry = *place;
    *place = NULL;
    for (; entry; entry = next) {
        next = entry->next;
        put(place_of(index, entry->key), entry);
    }
}

void index_add(struct index *index, struct index_entry *entry, uint64_t key)
{
    if (index->n_entries > index->n_more)
        index_grow(index);
    entry->key = key;
    put(place_of(index, key), entry);
    index->n_entries++;
}

void index_remove(struct index *index, struct index_entry *entry)
{
    if (entry->next)
        entry->next->prev = entry->prev;
    if (entry->prev)
        entry->prev->next = entry->next;
    else
        *place_of(index, entry->key) = entry->next;
    index->n_entries--;
}

void index_clear(struct index *index)
{
    free(index->more);
    *index = (struct index)INDEX_NULL;
}

void index_deinit(struct index *index)
{
    assert(index->n_entries == 0);
    index_clear(index);
}

static struct index_entry *find_from(struct index_entry *entry, uint64_t key)
{
    while (entry && entry->key != key)
        entry = entry->next;
    return entry;
}

struct index_entry *index_find(const struct index *index, uint64_t key)
{
    return find_from(*place_of((struct index *)(uintptr_t)index, key), key);
}

struct index_entry *index_find_next(const struct index_entry *entry)
{
    return find_from(entry->next, entry->key);
}
