/* SPDX-License-Identifier: MIT */
/* The state of a group. */

#include "supervisor/group/cell/state.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/undescribed.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/settings.h"
#include <string.h>

void group_set_pending(struct group *group, bool pending)
{
    if (group_is_pending(group) == pending)
        return;
    if (pending)
        list_push_back(&group->context->registry->pending, &group->pending_link);
    else
        list_unlink(&group->pending_link);
}

void group_note_user(struct group *group)
{
    struct index *by_user = &group->context->registry->by_user;

    index_remove(by_user, &group->user_entry);
    index_add(by_user, &group->user_entry, group_user(group));
}

bool group_stays_stopped(const struct group *group)
{
    return settings_find(group->context->stops, group->name, strlen(group->name));
}

void group_enlist(struct group *group)
{
    group_set_pending(group, group->config->autostart && !group_stays_stopped(group));
}

void group_review_stop(struct group *group)
{
    if (group_stays_stopped(group) && (group->wanted || group_is_pending(group)))
        group_stop(group, false);
}

const struct job_history *group_history(const struct group *group)
{
    return group->cell ? &group->cell->history : &group->history;
}

static enum state group_workers_state(const struct group *group)
{
    const struct census *census = &group->pools.census;
    const bool paused = group->pause != CELL_RUNS;

    if (census->n[CENSUS_PLACE] == 0)
        return !group->wanted ? STATE_STOPPED : paused ? STATE_PAUSED : STATE_RUNNING;
    return state_of(census, paused);
}

void group_call_senders(struct group *group)
{
    group_command(group, &(struct cell_command){.type = CELL_REVIEW});
}

const char *group_store_problem(const struct group *group)
{
    const struct store *store = group->context->durable->store;

    if (!group->config->durable)
        return NULL;
    if (!store)
        return "the store of durable jobs could not be started: see the log";
    if (store_state(store) == STORE_OPENING)
        return STORE_OPENING_TEXT;
    if (store_is_slow(store))
        return STORE_SLOW_TEXT;
    return store_state(store) == STORE_OPEN ? NULL : store_problem(store);
}

static bool is_well(enum state state)
{
    return state == STATE_RUNNING || state == STATE_PAUSED;
}

static enum state current_state(const struct group *group)
{
    enum state state = group_workers_state(group);

    if (group_is_undescribed(group))
        return STATE_FAILED;
    if (group->removal != GROUP_STAYS)
        return group->removal == GROUP_OVER ? STATE_STOPPING : STATE_DRAINING;
    if (group_is_blocked(group) && group->wanted)
        return STATE_FAILED;
    if (group_is_pending(group))
        return STATE_STARTING;
    if (outcomes_failing(&group_history(group)->outcomes) &&
        (is_well(state) || state == STATE_DEGRADED || state == STATE_STARTING))
        return STATE_FAILING;
    if (is_well(state) && (group_is_behind(group) || group->fault || group_store_problem(group)))
        return STATE_DEGRADED;
    return is_well(state) && group->drain != GROUP_OPEN ? STATE_DRAINING : state;
}

const char *group_state(const struct group *group)
{
    return state_to_string(current_state(group));
}

bool group_is_well(const struct group *group)
{
    const enum state state = current_state(group);

    return is_well(state) || (state == STATE_DRAINING && group->removal == GROUP_STAYS);
}

bool group_decided(const struct group *group)
{
    return !group_is_pending(group) && !group_is_visited(group) &&
           group->pools.census.n[CENSUS_UNDECIDED] == 0;
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
