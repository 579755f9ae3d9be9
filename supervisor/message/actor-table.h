/* SPDX-License-Identifier: MIT */
#pragma once

/* All actors by reference, which is a handle: it names one actor for ever. */

#include "shared/base/handle-table.h"
#include <stddef.h>
#include <stdint.h>

struct actor;

struct actor_table {
    struct handle_table handles;
};

void actor_table_deinit(struct actor_table *table); /* empty */

/* Sets actor->reference. 0 or -ENOMEM. */
int actor_table_add(struct actor_table *table, struct actor *actor);
void actor_table_remove(struct actor_table *table, struct actor *actor);

/* NULL = there is none any more, or there never was. */
static inline struct actor *actor_get(const struct actor_table *table, uint64_t reference)
{
    return handle_table_get(&table->handles, reference);
}

/* Iterates over all actors, for lists; NULL at the end. `cursor` starts at 0. */
static inline struct actor *actor_next(const struct actor_table *table, size_t *cursor)
{
    return handle_table_next(&table->handles, cursor);
}

/* The actor's name; "" for 0, "(gone)" for one that has ended. Borrowed. */
const char *actor_name_of(const struct actor_table *table, uint64_t reference);
