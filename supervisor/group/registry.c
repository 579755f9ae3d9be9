/* SPDX-License-Identifier: MIT */
#include "supervisor/group/registry.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/syntax/suggest.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/pool/slot/slot.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void registry_init(struct registry *registry)
{
    *registry = (struct registry){0};
    list_init(&registry->pending);
    list_init(&registry->removed);
    list_init(&registry->down);
    group_faults_init(&registry->faults);
    group_closings_init(&registry->closings);
    group_walks_init(&registry->walks);
}

void registry_deinit(struct registry *registry)
{
    index_deinit(&registry->by_reference);
    index_deinit(&registry->by_user);
    free(TAKE_PTR(registry->sorted));
    registry->n_groups = 0;
}

/* Returns where the name is, or would be, in the order of names. */
static size_t registry_place(const struct registry *registry, const char *name, bool *ret_found)
{
    size_t low = 0, high = registry->n_groups;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(registry->sorted[middle]->name, name);

        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
            *ret_found = *ret_found || order == 0;
        }
    }
    return low;
}

/* FNV-1a, 64 bits: two names of a configuration do not collide in practice. */
static uint64_t reference_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return hash;
}

int registry_add(struct registry *registry, struct group *group)
{
    struct group **sorted;
    bool found;
    size_t place = registry_place(registry, group->name, &found);

    if (found)
        return -EEXIST;
    sorted = reallocarray(registry->sorted, registry->n_groups + 1, sizeof(struct group *));
    if (!sorted)
        return -ENOMEM;
    registry->sorted = sorted;
    group->reference = reference_of(group->name);
    index_add(&registry->by_reference, &group->reference_entry, group->reference);
    index_add(&registry->by_user, &group->user_entry, group_user(group));
    memmove(registry->sorted + place + 1, registry->sorted + place,
            (registry->n_groups - place) * sizeof(struct group *));
    registry->sorted[place] = group;
    registry->n_groups++;
    return 0;
}

void registry_remove(struct registry *registry, struct group *group)
{
    bool found;
    size_t place = registry_place(registry, group->name, &found);

    index_remove(&registry->by_reference, &group->reference_entry);
    index_remove(&registry->by_user, &group->user_entry);
    registry->found = NULL;
    registry->n_groups--;
    memmove(registry->sorted + place, registry->sorted + place + 1,
            (registry->n_groups - place) * sizeof(struct group *));
    list_unlink(&group->pending_link);
    list_unlink(&group->removed_link);
    list_unlink(&group->down_link);
}

struct group *registry_find(const struct registry *registry, const char *name)
{
    bool found;
    size_t place = registry_place(registry, name, &found);

    return found ? registry->sorted[place] : NULL;
}

struct group *registry_find_text(const struct registry *registry, const char *name, size_t size)
{
    char text[CONFIG_GROUP_NAME_MAX + 1];

    if (size >= sizeof(text))
        return NULL;
    (void)snprintf(text, sizeof(text), "%.*s", (int)size, name);
    return registry_find(registry, text);
}

struct group *registry_group_of(const struct registry *registry, const char *address)
{
    return address ? registry_find_text(registry, address, strcspn(address, "/")) : NULL;
}

struct group *registry_after(const struct registry *registry, const char *name)
{
    bool found;
    size_t place = registry_place(registry, name, &found) + found;

    return place < registry->n_groups ? registry->sorted[place] : NULL;
}

struct group *registry_get(struct registry *registry, uint64_t reference)
{
    struct index_entry *entry;

    if (registry->found && registry->found->reference == reference)
        return registry->found;
    entry = index_find(&registry->by_reference, reference);
    if (!entry)
        return NULL;
    return registry->found = list_entry(entry, struct group, reference_entry);
}

static struct group *group_of_user(struct index_entry *entry)
{
    return entry ? list_entry(entry, struct group, user_entry) : NULL;
}

struct group *registry_next_of_user(const struct registry *registry, uid_t uid,
                                    const struct group *group)
{
    return group_of_user(group ? index_find_next(&group->user_entry)
                               : index_find(&registry->by_user, uid));
}

struct group *registry_next(const struct registry *registry, size_t *cursor)
{
    return *cursor < registry->n_groups ? registry->sorted[(*cursor)++] : NULL;
}

static struct slot *find_slot(const struct cell *cell, const char *number)
{
    unsigned long index;
    char *end;

    if (number[0] < '0' || number[0] > '9')
        return NULL;
    errno = 0;
    index = strtoul(number, &end, 10);
    if (errno != 0 || *end != '\0' || index >= cell->pool.n_slots ||
        cell->pool.slots[index]->retired)
        return NULL;
    return cell->pool.slots[index];
}

int registry_resolve(const struct registry *registry, const char *target,
                     struct registry_target *ret)
{
    const char *rest = strchr(target, '/');
    size_t size;

    *ret = (struct registry_target){.group = registry_group_of(registry, target)};
    if (!ret->group)
        return -ENOENT;
    if (!rest)
        return 0;
    rest++;
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

bool registry_find_actor(void *registry, const char *address, struct actor **ret)
{
    struct registry_target target;

    if (registry_resolve(registry, address, &target) < 0)
        return false;
    if (target.slot)
        *ret = target.slot->actor;
    else if (target.cell)
        *ret = target.cell->pool.actor;
    else
        *ret = target.group->cell ? target.group->cell->pool.actor : target.group->actor;
    return true;
}

/* A reload may have changed either group since the configuration was checked. */
static bool takes_jobs_of(const struct group *group, const struct group *from)
{
    return group != from && group->removal == GROUP_STAYS && !group->closed &&
           group->drain == GROUP_OPEN && group->config->type == CONFIG_ACTOR &&
           group->config->durable == from->config->durable;
}

struct cell *registry_find_after_oom(const struct registry *registry, const struct job *job)
{
    const struct group *from = job->group;
    struct group *group = registry_find(registry, job->cell->config->on_oom);
    const struct cell_request request = {
        .key = job->key,
        .key_size = job->key_size,
        .submitter_uid = job->submitter_uid,
        .bounded = job->submitter != NULL,
        .size = job->payload.size,
    };
    struct cell *cell;

    if (!group || !takes_jobs_of(group, from) || group_take_room(group, &request, &cell) != 0)
        return NULL;
    return cell;
}

const char *registry_nearest(const struct registry *registry, const char *name)
{
    _cleanup_free_ const char **names = calloc(registry->n_groups + 1, sizeof(*names));

    if (!names)
        return NULL;
    for (size_t i = 0; i < registry->n_groups; i++)
        names[i] = registry->sorted[i]->name;
    return suggest_nearest(name, names);
}
