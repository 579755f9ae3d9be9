/* SPDX-License-Identifier: MIT */
#include "registry.h"

#include "../shared/cleanup.h"
#include "cell.h"
#include "group.h"
#include "slot.h"
#include "suggest.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REFERENCE(index, generation) ((uint64_t)(generation) << 32 | (uint64_t)(index))

void registry_deinit(struct registry *registry)
{
    free(TAKE_PTR(registry->entries));
    registry->n_entries = registry->n_groups = 0;
}

static int registry_free_entry(struct registry *registry, size_t *ret_index)
{
    struct registry_entry *entries;
    size_t i;

    for (i = 0; i < registry->n_entries; i++)
        if (!registry->entries[i].group)
            break;
    if (i == registry->n_entries) {
        entries = realloc(registry->entries, (i + 1) * sizeof(*entries));
        if (!entries)
            return -ENOMEM;
        registry->entries = entries;
        registry->n_entries++;
        entries[i] = (struct registry_entry){0};
    }
    *ret_index = i;
    return 0;
}

int registry_add(struct registry *registry, struct group *group)
{
    size_t index;
    int r;

    if (registry_find(registry, group->name))
        return -EEXIST;
    r = registry_free_entry(registry, &index);
    if (r < 0)
        return r;
    registry->entries[index].group = group;
    registry->entries[index].generation++;
    registry->n_groups++;
    group->reference = REFERENCE(index, registry->entries[index].generation);
    return 0;
}

void registry_remove(struct registry *registry, struct group *group)
{
    registry->entries[(uint32_t)group->reference].group = NULL;
    registry->n_groups--;
}

struct group *registry_find(const struct registry *registry, const char *name)
{
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(registry, &cursor)))
        if (strcmp(group->name, name) == 0)
            return group;
    return NULL;
}

struct group *registry_get(const struct registry *registry, uint64_t reference)
{
    uint32_t index = (uint32_t)reference;

    if (index >= registry->n_entries ||
        registry->entries[index].generation != (uint32_t)(reference >> 32))
        return NULL;
    return registry->entries[index].group;
}

struct group *registry_next(const struct registry *registry, size_t *cursor)
{
    while (*cursor < registry->n_entries) {
        struct group *group = registry->entries[(*cursor)++].group;
        if (group)
            return group;
    }
    return NULL;
}

/* Slots beyond the pool's size are of the past. */
static struct slot *find_slot(const struct cell *cell, const char *number)
{
    unsigned long index;
    char *end;

    if (number[0] < '0' || number[0] > '9')
        return NULL;
    errno = 0;
    index = strtoul(number, &end, 10);
    if (errno != 0 || *end != '\0' || index >= cell->n_slots || cell->slots[index]->retired)
        return NULL;
    return cell->slots[index];
}

int registry_resolve(const struct registry *registry, const char *target,
                     struct registry_target *ret)
{
    size_t size = strcspn(target, "/");
    _cleanup_free_ char *name = strndup(target, size);
    const char *rest = target[size] == '/' ? target + size + 1 : NULL;

    if (!name)
        return -ENOMEM;
    *ret = (struct registry_target){.group = registry_find(registry, name)};
    if (!ret->group)
        return -ENOENT;
    if (!rest)
        return 0;
    ret->cell = ret->group->cell;
    if (group_is_keyed(ret->group)) {
        size = strcspn(rest, "/");
        ret->cell = group_find_cell(ret->group, rest, size);
        rest = rest[size] == '/' ? rest + size + 1 : NULL;
    }
    if (!ret->cell)
        return -ENOENT;
    if (!rest)
        return 0;
    ret->slot = find_slot(ret->cell, rest);
    return ret->slot ? 0 : -ENOENT;
}

int registry_resolve_ever(const struct registry *registry, const char *target,
                          struct registry_target *ret)
{
    const char *key = strchr(target, '/');
    int r = registry_resolve(registry, target, ret);

    if (r != -ENOENT || !key || !ret->group || !group_is_keyed(ret->group))
        return r;
    return protocol_name_valid(key + 1, strcspn(key + 1, "/")) ? 0 : -ENOENT;
}

const char *registry_nearest(const struct registry *registry, const char *name)
{
    _cleanup_free_ const char **names = calloc(registry->n_groups + 1, sizeof(*names));
    size_t cursor = 0, n = 0;
    struct group *group;

    if (!names)
        return NULL;
    while ((group = registry_next(registry, &cursor)))
        names[n++] = group->name;
    return suggest_nearest(name, names);
}
