/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-table.h"

#include "supervisor/message/actor.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define ACTOR_TABLE_MAX (UINT32_C(1) << 24)

static int grow(struct actor_table *table)
{
    const size_t n = table->n_allocated ? 2 * table->n_allocated : 64;
    struct actor **entries;
    uint32_t *numbers;

    if (n > ACTOR_TABLE_MAX)
        return -ENOMEM;
    entries = realloc(table->entries, n * sizeof(struct actor *));
    if (!entries)
        return -ENOMEM;
    table->entries = entries;
    numbers = realloc(table->generations, n * sizeof(*numbers));
    if (!numbers)
        return -ENOMEM;
    table->generations = numbers;
    numbers = realloc(table->free, n * sizeof(*numbers));
    if (!numbers)
        return -ENOMEM;
    table->free = numbers;
    table->n_allocated = n;
    return 0;
}

int actor_table_add(struct actor_table *table, struct actor *actor)
{
    uint32_t index;
    int r;

    if (table->n_free == 0 && table->n_entries == table->n_allocated) {
        r = grow(table);
        if (r < 0)
            return r;
    }
    if (table->n_free > 0) {
        index = table->free[--table->n_free];
    } else {
        index = (uint32_t)table->n_entries++;
        table->generations[index] = 0;
    }
    /* 0 would make the reference of index 0 mean nobody. */
    if (++table->generations[index] == 0)
        table->generations[index] = 1;
    table->entries[index] = actor;
    actor->reference = (uint64_t)table->generations[index] << 32 | index;
    return 0;
}

void actor_table_remove(struct actor_table *table, struct actor *actor)
{
    const uint32_t index = (uint32_t)actor->reference;

    table->entries[index] = NULL;
    table->free[table->n_free++] = index;
}

void actor_table_deinit(struct actor_table *table)
{
    assert(table->n_free == table->n_entries);
    free(table->entries);
    free(table->generations);
    free(table->free);
    *table = (struct actor_table){0};
}

struct actor *actor_get(const struct actor_table *table, uint64_t reference)
{
    const uint32_t index = (uint32_t)reference;
    struct actor *actor = index < table->n_entries ? table->entries[index] : NULL;

    return actor && actor->reference == reference ? actor : NULL;
}

struct actor *actor_next(const struct actor_table *table, size_t *cursor)
{
    while (*cursor < table->n_entries) {
        struct actor *actor = table->entries[(*cursor)++];
        if (actor)
            return actor;
    }
    return NULL;
}

const char *actor_name_of(const struct actor_table *table, uint64_t reference)
{
    const struct actor *actor = actor_get(table, reference);

    if (actor)
        return actor->name;
    return reference == 0 ? "" : "(gone)";
}
