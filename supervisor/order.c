/* SPDX-License-Identifier: MIT */
#include "order.h"

#include "group.h"
#include "registry.h"
#include "strategy.h"
#include <string.h>

static bool names(config_strv after, const char *name)
{
    for (size_t i = 0; after && after[i]; i++)
        if (strcmp(after[i], name) == 0)
            return true;
    return false;
}

/* What it comes after may have been removed since: then there is nothing to wait for. */
static bool may_start(const struct registry *registry, const struct group *group)
{
    config_strv after = group->config->after;

    for (size_t i = 0; after && after[i]; i++) {
        const struct group *before = registry_find(registry, after[i]);
        if (before && !group_decided(before))
            return false;
    }
    return true;
}

bool order_start(struct registry *registry)
{
    size_t cursor = 0;
    struct group *group;
    bool waiting = false;

    while ((group = registry_next(registry, &cursor))) {
        if (!group->pending)
            continue;
        if (!may_start(registry, group))
            waiting = true;
        else if (!strategy_release_group(group))
            group_start(group);
    }
    return waiting;
}

/* Each group is looked at once, by however many ways one gets there. */
static bool follows(const struct registry *registry, struct group *group,
                    const struct group *before)
{
    config_strv after = group->config->after;

    if (group->followed)
        return group->follows;
    group->followed = true;
    for (size_t i = 0; after && after[i] && !group->follows; i++) {
        struct group *direct = registry_find(registry, after[i]);
        group->follows = direct && (direct == before || follows(registry, direct, before));
    }
    return group->follows;
}

void order_find_followers(struct registry *registry, const struct group *before)
{
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(registry, &cursor)))
        group->follows = group->followed = false;
    cursor = 0;
    while ((group = registry_next(registry, &cursor)))
        (void)follows(registry, group, before);
}

static bool may_stop(const struct registry *registry, const struct group *group)
{
    size_t cursor = 0;
    const struct group *other;

    while ((other = registry_next(registry, &cursor)))
        if (names(other->config->after, group->name) && !group_down(other))
            return false;
    return true;
}

bool order_stop(struct registry *registry)
{
    size_t cursor = 0;
    struct group *group;
    bool up = false;

    while ((group = registry_next(registry, &cursor))) {
        if (group_down(group))
            continue;
        up = true;
        if (may_stop(registry, group))
            group_stop(group, true);
    }
    return up;
}
