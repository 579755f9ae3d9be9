/* SPDX-License-Identifier: MIT */
#include "supervisor/group/order.h"

#include "supervisor/group/cell/limit-table.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"

/* A removed group is not waited for. Until the settings of earlier runs are known, the group may be
 * one that stays stopped. */
static bool may_start(const struct registry *registry, const struct group *group)
{
    config_strv after = group->config->after.strings;

    if (group->context->limits->awaited)
        return false;
    for (size_t i = 0; after && after[i]; i++) {
        const struct group *before = registry_find(registry, after[i]);
        if (before && !group_decided(before))
            return false;
    }
    return true;
}

void order_start(struct registry *registry)
{
    list_for_each_entry_safe (group, &registry->pending, struct group, pending_link)
        if (may_start(registry, group))
            group_start(group);
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
    registry->stopping = true;
    registry->n_up = registry->n_groups;
    registry_each_group (group, registry)
        order_follow(registry, group, true);
    registry_each_group (group, registry) {
        group_note_down(group);
        order_stop_group(group);
    }
}

bool order_stop(struct registry *registry)
{
    if (!registry->stopping)
        order_begin_stop(registry);
    list_until_empty (group, &registry->down, struct group, down_link) {
        list_unlink(&group->down_link);
        if (!group_down(group)) {
            order_stop_group(group); /* it has been restarted; it comes here again */
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
