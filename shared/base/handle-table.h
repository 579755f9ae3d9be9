/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Finds objects by handle. A handle is generation << 32 | index, below 2^63: it names one object
 * for ever, and finds nothing once that object has left the table. Adding, finding and removing
 * cost the same however many objects there are.
 */

#include <stddef.h>
#include <stdint.h>

struct handle_entry {
    void *object; /* borrowed; NULL = free */
    uint32_t generation;
    uint32_t next_free;
};

struct handle_table {
    struct handle_entry *entries;
    uint32_t n_entries;
    uint32_t first_free; /* n_entries = none */
};

/* clang-format off */
#define HANDLE_TABLE_NULL {0}
/* clang-format on */

/* Objects are not touched. */
void handle_table_deinit(struct handle_table *table);

/* 0 and a handle, which is never 0, or -ENOMEM. */
int handle_table_add(struct handle_table *table, void *object, uint64_t *ret_handle);

/* NULL if it was removed or never was. */
static inline void *handle_table_get(const struct handle_table *table, uint64_t handle)
{
    const uint32_t index = (uint32_t)handle;

    return index < table->n_entries && table->entries[index].generation == handle >> 32
               ? table->entries[index].object
               : NULL;
}

/* Idempotent: a handle that finds nothing removes nothing. */
void handle_table_remove(struct handle_table *table, uint64_t handle);

/* Iterates over all objects in any order; NULL when done, `cursor` starts at 0. */
void *handle_table_next(const struct handle_table *table, size_t *cursor);
