/* SPDX-License-Identifier: MIT */
/* What a group counts, and the word for its state. */

#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include <string.h>

uint64_t group_queued(const struct group *group)
{
    return group->n_live - group->n_running - group->n_backoff;
}

void group_set_pending(struct group *group, bool pending)
{
    if (group->pending == pending)
        return;
    group->pending = pending;
    if (pending)
        list_push_back(&group->context->registry->pending, &group->pending_link);
    else
        list_unlink(&group->pending_link);
}

const struct outcomes *group_outcomes(const struct group *group)
{
    return group->cell ? &group->cell->outcomes : &group->outcomes;
}

/* Of those of its workers that stay. */
static const char *group_workers_state(const struct group *group)
{
    struct census staying = group->pools.census;
    bool paused = group->cell ? group->cell->paused : group->paused;

    census_subtract(&staying, &group->retiring);
    if (staying.n[CENSUS_SLOT] == 0)
        return !group->wanted ? "stopped" : paused ? "paused" : "running";
    return census_state(&staying, paused);
}

static bool state_is_well(const char *state)
{
    return strcmp(state, "running") == 0 || strcmp(state, "paused") == 0;
}

const char *group_state(const struct group *group)
{
    const char *state = group_workers_state(group);
    bool well = state_is_well(state);

    if (group->removed)
        return group->drained ? "stopping" : "draining";
    if (group_is_blocked(group) && group->wanted)
        return "failed";
    if (group->pending)
        return "starting";
    if (outcomes_failing(group_outcomes(group)) &&
        (well || strcmp(state, "degraded") == 0 || strcmp(state, "starting") == 0))
        return "failing";
    return well && (group_is_behind(group) || group->fault) ? "degraded" : state;
}

bool group_is_well(const struct group *group)
{
    return state_is_well(group_state(group));
}

bool group_decided(const struct group *group)
{
    return !group->pending && group->pools.census.n[CENSUS_UNDECIDED] == 0;
}

bool group_down(const struct group *group)
{
    return census_down(&group->pools.census);
}

void group_note_down(struct group *group)
{
    struct registry *registry = group->context->registry;

    if (registry->stopping && group_down(group) && !list_linked(&group->down_link))
        list_push_back(&registry->down, &group->down_link);
}
