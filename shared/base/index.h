/* SPDX-License-Identifier: MIT */
#pragma once

/* A hash table of entries by a number: a key, or a hash of one. Adding, finding and removing take
 * constant time; it grows by one bucket per entry, never all at once. The hash depends on
 * hash_secret(), so peers cannot choose keys that collide. */

#include <stddef.h>
#include <stdint.h>

/* Embedded in the object to be found. Several may have the same key. */
struct index_entry {
    struct index_entry *next, *prev; /* in its bucket; prev NULL = the first there */
    uint64_t key;
};

struct index {
    struct index_entry *first; /* the first bucket */
    struct index_entry **more; /* the other buckets */
    uint32_t n_more, n_allocated;
    uint32_t n_entries;
};

/* clang-format off */
#define INDEX_NULL {0}
/* clang-format on */

void index_deinit(struct index *index); /* the index must be empty */
/* Forgets all entries, without a look at them. */
void index_clear(struct index *index);

/* Cannot fail: without memory to grow it becomes slower. */
void index_add(struct index *index, struct index_entry *entry, uint64_t key);
void index_remove(struct index *index, struct index_entry *entry);

/* Returns an entry with this key, or the next one with the same key; NULL = none. */
struct index_entry *index_find(const struct index *index, uint64_t key);
struct index_entry *index_find_next(const struct index_entry *entry);

static inline void *index_container(const struct index_entry *entry, size_t offset)
{
    return entry ? (char *)(uintptr_t)entry - offset : NULL;
}
/* Like index_find(), for what the entry is a member of. */
#define index_find_entry(index, key, type, member)                                                 \
    ((type *)index_container(index_find((index), (key)), offsetof(type, member)))
/* All objects with this key. The body must not remove the current one. */
#define index_for_each_entry(object, index, key, type, member)                                     \
    for (type *object = index_find_entry(index, key, type, member); object;                        \
         object = index_container(index_find_next(&object->member), offsetof(type, member)))
