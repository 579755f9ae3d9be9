/* SPDX-License-Identifier: MIT */
#include "supervisor/group/order.h"

#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"

/* A removed group is not waited for. */
static bool may_start(const struct registry *registry, const struct group *group)
{
    config_strv after = group->config->after.strings;

    for (size_t i = 0; after && after[i]; i++) {
        const struct group *before = registry_find(registry, after[i]);
        if (before && !group_decided(before))
            return false;
    }
    return true;
}

/* Returns false if the group has never been started. */
static bool release(struct group *group)
{
    if (!group->wanted)
        return false;
    group_set_pending(group, false);
    group_each_cell (cell, group)
        pool_release(&cell->pool);
    return true;
}

void order_start(struct registry *registry)
{
    list_for_each_safe (node, &registry->pending) {
        struct group *group = list_entry(node, struct group, pending_link);

        if (may_start(registry, group) && !release(group))
            group_start(group);
    }
}

/* Visits each group once. */
static bool follows(const struct registry *registry, struct group *group,
                    const struct group *before)
{
    config_strv after = group->config->after.strings;

    if (group->order.visited)
        return group->order.follows;
    group->order.visited = true;
    for (size_t i = 0; after && after[i] && !group->order.follows; i++) {
        struct group *direct = registry_find(registry, after[i]);
        group->order.follows = direct && (direct == before || follows(registry, direct, before));
    }
    return group->order.follows;
}

/* Sets order.follows of all groups: whether they come after `before`. */
static void find_followers(struct registry *registry, const struct group *before)
{
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(registry, &cursor)))
        group->order.follows = group->order.visited = false;
    cursor = 0;
    while ((group = registry_next(registry, &cursor)))
        (void)follows(registry, group, before);
}

static unsigned hold(struct group *group)
{
    unsigned n = 0;

    group_each_cell (cell, group)
        n += pool_hold(&cell->pool);
    if (n > 0)
        group_set_pending(group, true);
    return n;
}

unsigned order_take_along(struct registry *registry, const struct group *before)
{
    struct group *group;
    size_t cursor = 0;
    unsigned n = 0;

    find_followers(registry, before);
    while ((group = registry_next(registry, &cursor)))
        if (group != before && group->order.follows)
            n += hold(group);
    return n;
}

static void order_stop_group(struct group *group)
{
    if (group->order.n_followers_up == 0)
        group_stop(group, true);
}

/* Counts `group` as up, or down, for the groups that it comes after. */
static void order_follow(struct registry *registry, const struct group *group, bool up)
{
    config_strv after = group->config->after.strings;

    for (size_t i = 0; after && after[i]; i++) {
        struct group *before = registry_find(registry, after[i]);

        if (!before || before == group)
            continue;
        before->order.n_followers_up += up ? 1 : (size_t)-1;
        if (!up)
            order_stop_group(before);
    }
}

static void order_begin_stop(struct registry *registry)
{
    size_t cursor = 0;
    struct group *group;

    registry->stopping = true;
    registry->n_up = registry->n_groups;
    while ((group = registry_next(registry, &cursor)))
        order_follow(registry, group, true);
    cursor = 0;
    while ((group = registry_next(registry, &cursor))) {
        group_note_down(group);
        order_stop_group(group);
    }
}

bool order_stop(struct registry *registry)
{
    struct list *node;

    if (!registry->stopping)
        order_begin_stop(registry);
    while ((node = list_first(&registry->down))) {
        struct group *group = list_entry(node, struct group, down_link);

        list_unlink(node);
        if (!group_down(group)) {
            order_stop_group(group); /* restarted meanwhile; it comes here again */
            continue;
        }
        if (group->order.stopped)
            continue;
        group_stop(group, true); /* cancels queued starts */
        group->order.stopped = true;
        registry->n_up--;
        order_follow(registry, group, false);
    }
    return registry->n_up > 0;
}
