/* SPDX-License-Identifier: MIT */

/* Checks OnOom=: the group that it names exists and can take the jobs of this one. */

#include "supervisor/config/check/check.h"
#include "supervisor/config/check/neighbours.h"
#include "supervisor/config/keys/draft.h"
#include <stdio.h>
#include <string.h>

#define KEY "OnOom"

static int refuse(const struct config_group *group, const char *why, const char *allowed)
{
    return config_draft_problem(group->draft, KEY, KEY "=%s: %s; allowed: %s", group->on_oom, why,
                                allowed);
}

static int refuse_itself(const struct config_group *group)
{
    return refuse(group, "a job that ran out of memory would find no more in the same group",
                  "the name of another group");
}

static int check_pair(const struct config_group *group, const struct config_group *other)
{
    if (other == group)
        return refuse_itself(group);
    if (other->type != CONFIG_ACTOR)
        return refuse(group, "it is a service, which takes no jobs", "a group with Type=actor");
    if (other->durable != group->durable)
        return refuse(group, "only one of the two groups has Durable=yes",
                      "the same Durable= in both");
    if (other->cells == CONFIG_CELLS_BY_KEY && group->cells == CONFIG_CELLS_NONE)
        return refuse(group, "it has Cells=by-key, and jobs of this group may have no key",
                      "a group without cells, or Cells=by-key in both");
    if (other->on_oom)
        return refuse(group, "it has OnOom= as well, and a job moves only once",
                      "a group without OnOom=");
    return 0;
}

static int check_one(const struct neighbours *all, const struct config_group *group)
{
    const size_t other = neighbours_find(all, group->on_oom);

    return other == NEIGHBOURS_NONE ? neighbours_check(all, group, KEY, group->on_oom)
                                    : check_pair(group, all->groups[other]);
}

int config_check_oom(struct config_group *const *groups, size_t n_groups)
{
    const struct neighbours all = {groups, n_groups};
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_groups; i++)
        if (groups[i]->on_oom && groups[i]->type == CONFIG_ACTOR) /* else it is told already */
            r = check_one(&all, groups[i]);
    return r;
}

int config_check_oom_beside(const struct config_group *group)
{
    bool exists;

    if (!group->on_oom)
        return 0;
    if (strcmp(group->on_oom, group->name) == 0)
        return refuse_itself(group);
    return neighbours_check_beside(group, KEY, group->on_oom, &exists);
}
