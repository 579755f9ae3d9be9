/* SPDX-License-Identifier: MIT */
#include "context.h"
#include "group.h"

uint64_t group_queued(const struct group *group)
{
    return group->n_live - group->n_running - group->n_backoff;
}

void group_recount(struct cell *cell, unsigned before, unsigned after)
{
    struct group *group = cell->group;

    census_move(&cell->census, before, after);
    census_move(&group->census, before, after);
    if (cell->retiring)
        census_move(&group->retiring, before, after);
    registry_recount(&group->context->registry, group, before, after);
}

void group_set_retiring(struct cell *cell, bool retiring)
{
    if (cell->retiring == retiring)
        return;
    cell->retiring = retiring;
    if (retiring)
        census_add(&cell->group->retiring, &cell->census);
    else
        census_subtract(&cell->group->retiring, &cell->census);
}

void group_set_pending(struct group *group, bool pending)
{
    if (group->pending == pending)
        return;
    group->pending = pending;
    if (pending)
        list_push_back(&group->context->registry.pending, &group->pending_link);
    else
        list_unlink(&group->pending_link);
}

const char *group_state(const struct group *group)
{
    struct census staying = group->census;
    bool paused = group->cell ? group->cell->paused : group->paused;

    census_subtract(&staying, &group->retiring);
    if (staying.n[CENSUS_SLOT] == 0)
        return !group->wanted ? "stopped" : paused ? "paused" : "running";
    return census_state(&staying, paused);
}

bool group_decided(const struct group *group)
{
    return !group->pending && group->census.n[CENSUS_UNDECIDED] == 0;
}

bool group_down(const struct group *group)
{
    return census_down(&group->census);
}
