/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-table.h"

#include "supervisor/message/actor.h"
#include <assert.h>

void actor_table_deinit(struct actor_table *table)
{
    assert(!actor_next(table, &(size_t){0}));
    handle_table_deinit(&table->handles);
}

int actor_table_add(struct actor_table *table, struct actor *actor)
{
    return handle_table_add(&table->handles, actor, &actor->reference);
}

void actor_table_remove(struct actor_table *table, struct actor *actor)
{
    handle_table_remove(&table->handles, actor->reference);
}

const char *actor_name_of(const struct actor_table *table, uint64_t reference)
{
    const struct actor *actor = actor_get(table, reference);

    if (actor)
        return actor->name;
    return reference == 0 ? "" : "(gone)";
}
