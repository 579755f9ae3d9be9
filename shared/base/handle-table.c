/* SPDX-License-Identifier: MIT */
#include "shared/base/handle-table.h"

#include <errno.h>
#include <stdlib.h>

#define ENTRIES_MIN 16u
#define ENTRIES_MAX (UINT32_C(1) << 28)

void handle_table_deinit(struct handle_table *table)
{
    free(table->entries);
    *table = (struct handle_table)HANDLE_TABLE_NULL;
}

static int handle_table_grow(struct handle_table *table)
{
    const uint32_t n = table->n_allocated > 0 ? 2 * table->n_allocated : ENTRIES_MIN;
    struct handle_entry *entries;

    if (n > ENTRIES_MAX)
        return -ENOMEM;
    entries = reallocarray(table->entries, n, sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    table->entries = entries;
    table->n_allocated = n;
    return 0;
}

int handle_table_add(struct handle_table *table, void *object, uint64_t *ret_handle)
{
    uint32_t index = table->first_free - 1;
    struct handle_entry *entry;

    if (table->first_free == 0) {
        if (table->n_entries == table->n_allocated && handle_table_grow(table) < 0)
            return -ENOMEM;
        index = table->n_entries++;
        table->entries[index] = (struct handle_entry){0};
    }
    entry = &table->entries[index];
    table->first_free = entry->next_free;
    entry->object = object;
    if (++entry->generation > INT32_MAX)
        entry->generation = 1;
    *ret_handle = handle_table_handle(table, index);
    return 0;
}

int handle_table_restore(struct handle_table *table, uint64_t handle, void *object)
{
    const uint32_t index = (uint32_t)handle;
    struct handle_entry *entry;

    while (index >= table->n_entries) {
        if (table->n_entries == table->n_allocated && handle_table_grow(table) < 0)
            return -ENOMEM;
        table->entries[table->n_entries++] = (struct handle_entry){0};
    }
    entry = &table->entries[index];
    if (entry->object || entry->generation > handle >> 32)
        return -EEXIST;
    entry->object = object;
    entry->generation = (uint32_t)(handle >> 32);
    return 0;
}

void handle_table_link_free(struct handle_table *table)
{
    table->first_free = 0;
    for (uint32_t i = table->n_entries; i > 0; i--) {
        if (table->entries[i - 1].object)
            continue;
        table->entries[i - 1].next_free = table->first_free;
        table->first_free = i;
    }
}

void handle_table_replace(struct handle_table *table, uint64_t handle, void *object)
{
    if (handle_table_get(table, handle))
        table->entries[(uint32_t)handle].object = object;
}

void handle_table_remove(struct handle_table *table, uint64_t handle)
{
    const uint32_t index = (uint32_t)handle;

    if (!handle_table_get(table, handle))
        return;
    table->entries[index].object = NULL;
    table->entries[index].next_free = table->first_free;
    table->first_free = index + 1;
}

void *handle_table_next(const struct handle_table *table, size_t *cursor)
{
    while (*cursor < table->n_entries) {
        void *object = table->entries[(*cursor)++].object;

        if (object)
            return object;
    }
    return NULL;
}
