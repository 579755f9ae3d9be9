/* SPDX-License-Identifier: MIT */
/* What a group counts, and the word for its state. */

#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include <stdio.h>
#include <string.h>

uint64_t group_queued(const struct group *group)
{
    return group->n_live - group->n_running - group->n_backoff;
}

void group_set_retiring(struct cell *cell, bool retiring)
{
    struct group *group = cell->group;

    if (cell->retiring == retiring)
        return;
    cell->retiring = retiring;
    if (retiring)
        census_add(&group->retiring, &cell->pool.census);
    else
        census_subtract(&group->retiring, &cell->pool.census);
    cell->pool.census.parent = retiring ? &group->retiring : &group->pools.census;
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

void group_note_dead(struct group *group, const struct job *job)
{
    group->last_dead.id = job->id;
    group->last_dead.at = job->ended_at;
    (void)snprintf(group->last_dead.reason, sizeof(group->last_dead.reason), "%s",
                   job->reason ? job->reason : "");
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

void group_cell_is_down(struct group *group)
{
    registry_note_down(group->context->registry, group);
}

bool group_down(const struct group *group)
{
    return census_down(&group->pools.census);
}
