/* SPDX-License-Identifier: MIT */
#include "supervisor/message/inheritance.h"

#include "shared/base/hash.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void inheritance_init(struct inheritance *inheritance)
{
    *inheritance = (struct inheritance){0};
    list_init(&inheritance->actors);
    list_init(&inheritance->needed);
}

void inheritance_deinit(struct inheritance *inheritance)
{
    struct inherited_actor *actor;

    while ((actor = inheritance_take_any(inheritance)))
        free(actor);
    index_deinit(&inheritance->by_name);
}

int inheritance_add(struct inheritance *inheritance, const struct actor_row *row)
{
    const size_t size = strlen(row->name);
    struct inherited_actor *actor = calloc(1, sizeof(*actor) + size + 1);

    if (!actor)
        return -ENOMEM;
    actor->row = *row;
    actor->row.name = actor->name;
    (void)stpcpy(actor->name, row->name);
    list_init(&actor->link);
    list_init(&actor->needed_link);
    list_push_back(&inheritance->actors, &actor->link);
    if (row->needed)
        list_push_back(&inheritance->needed, &actor->needed_link);
    index_add(&inheritance->by_name, &actor->by_name, hash_bytes(actor->name, size));
    return 0;
}

static struct inherited_actor *take(struct inheritance *inheritance, struct inherited_actor *actor)
{
    list_unlink(&actor->link);
    list_unlink(&actor->needed_link);
    index_remove(&inheritance->by_name, &actor->by_name);
    return actor;
}

struct inherited_actor *inheritance_take(struct inheritance *inheritance, const char *name)
{
    struct index_entry *entry = index_find(&inheritance->by_name, hash_bytes(name, strlen(name)));
    struct inherited_actor *found = NULL;

    for (; entry; entry = index_find_next(entry)) {
        struct inherited_actor *actor = list_entry(entry, struct inherited_actor, by_name);

        if (strcmp(actor->name, name) == 0 && (!found || !actor->row.standby))
            found = actor;
    }
    return found ? take(inheritance, found) : NULL;
}

bool inheritance_next_needed(struct inheritance *inheritance, char ret[INHERITED_NAME_MAX])
{
    struct list *node = list_first(&inheritance->needed);
    const struct inherited_actor *actor;

    if (!node)
        return false;
    actor = list_entry(node, struct inherited_actor, needed_link);
    (void)snprintf(ret, INHERITED_NAME_MAX, "%s", actor->name);
    list_unlink(node);
    return true;
}

struct inherited_actor *inheritance_take_any(struct inheritance *inheritance)
{
    struct list *node = list_first(&inheritance->actors);

    return node ? take(inheritance, list_entry(node, struct inherited_actor, link)) : NULL;
}
