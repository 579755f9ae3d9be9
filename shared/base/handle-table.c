/* SPDX-License-Identifier: MIT */
#include "shared/base/handle-table.h"

#include <errno.h>
#include <stdlib.h>

#define ENTRIES_MIN 16u
#define ENTRIES_MAX (UINT32_C(1) << 24)

void handle_table_deinit(struct handle_table *table)
{
    free(table->entries);
    *table = (struct handle_table)HANDLE_TABLE_NULL;
}

static int handle_table_grow(struct handle_table *table)
{
    const uint32_t n = table->n_entries > 0 ? 2 * table->n_entries : ENTRIES_MIN;
    struct handle_entry *entries;

    if (n > ENTRIES_MAX)
        return -ENOMEM;
    entries = reallocarray(table->entries, n, sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    for (uint32_t i = table->n_entries; i < n; i++)
        entries[i] = (struct handle_entry){.next_free = i + 1};
    table->entries = entries;
    table->n_entries = n;
    return 0;
}

int handle_table_add(struct handle_table *table, void *object, uint64_t *ret_handle)
{
    const uint32_t index = table->first_free;
    struct handle_entry *entry;
    int r;

    if (index == table->n_entries) {
        r = handle_table_grow(table);
        if (r < 0)
            return r;
    }
    entry = &table->entries[index];
    table->first_free = entry->next_free;
    entry->object = object;
    if (++entry->generation > INT32_MAX)
        entry->generation = 1;
    *ret_handle = (uint64_t)entry->generation << 32 | index;
    return 0;
}

void handle_table_remove(struct handle_table *table, uint64_t handle)
{
    const uint32_t index = (uint32_t)handle;

    if (!handle_table_get(table, handle))
        return;
    table->entries[index].object = NULL;
    table->entries[index].next_free = table->first_free;
    table->first_free = index;
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
