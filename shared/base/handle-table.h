/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds objects by handle. A handle is generation << 32 | index, below 2^63: it is never reused,
 * so it finds nothing after its object was removed. Adding, finding and removing take constant
 * time. */

#include <stddef.h>
#include <stdint.h>

struct handle_entry {
    void *object; /* borrowed; NULL = free */
    uint32_t generation;
    uint32_t next_free; /* index + 1; 0 = none */
};

struct handle_table {
    struct handle_entry *entries;
    uint32_t n_entries, n_allocated;
    uint32_t first_free; /* index + 1; 0 = none */
};

/* clang-format off */
#define HANDLE_TABLE_NULL {0}
/* clang-format on */

/* Frees the table, not the objects. */
void handle_table_deinit(struct handle_table *table);

/* Returns 0 and a handle, which is never 0, or -ENOMEM. */
int handle_table_add(struct handle_table *table, void *object, uint64_t *ret_handle);

/* Adds an object under the handle that another table once gave it, before any other is added.
 * handle_table_link_free() follows. Returns 0, -EEXIST (a later object has or had its place) or
 * -ENOMEM. */
int handle_table_restore(struct handle_table *table, uint64_t handle, void *object);
void handle_table_link_free(struct handle_table *table);

/* Makes the handle find `object` from now on. Does nothing if the handle finds nothing. */
void handle_table_replace(struct handle_table *table, uint64_t handle, void *object);

/* Returns NULL if the object has been removed or never existed. */
static inline void *handle_table_get(const struct handle_table *table, uint64_t handle)
{
    const uint32_t index = (uint32_t)handle;

    return index < table->n_entries && table->entries[index].generation == handle >> 32
               ? table->entries[index].object
               : NULL;
}

/* Idempotent: a handle that finds nothing removes nothing. */
void handle_table_remove(struct handle_table *table, uint64_t handle);

/* Returns the object with this index; NULL = none. `index` is below n_entries. */
static inline void *handle_table_at(const struct handle_table *table, uint32_t index)
{
    return table->entries[index].object;
}

/* Returns the handle of the object with this index, which exists. */
static inline uint64_t handle_table_handle(const struct handle_table *table, uint32_t index)
{
    return (uint64_t)table->entries[index].generation << 32 | index;
}

/* Iterates over all objects by index; NULL when done. `cursor` starts at 0. */
void *handle_table_next(const struct handle_table *table, size_t *cursor);
