/* SPDX-License-Identifier: MIT */
#include "supervisor/group/after-oom.h"

#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"

/* A reload may have changed either group since the configuration was checked. */
static bool takes_jobs_of(const struct group *group, const struct group *from)
{
    return group != from && !group->removed && !group->closed && !group->draining &&
           group->config->type == CONFIG_ACTOR && group->config->durable == from->config->durable;
}

struct cell *after_oom_find(struct registry *registry, const struct job *job)
{
    const char *name = job->group->config->on_oom;
    struct group *group = name ? registry_find(registry, name) : NULL;
    struct cell *cell;

    if (!group || !takes_jobs_of(group, job->group) ||
        group_take_cell(group, job->key, job->key_size, &cell) != 0)
        return NULL;
    return cell;
}
