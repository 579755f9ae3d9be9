/* SPDX-License-Identifier: MIT */

/*
 * Changes the limits of a group. All counts that a change needs are always kept, except those of
 * each key: when limits of keys begin to apply, the jobs in hand are counted over several turns,
 * and no job begins meanwhile.
 */

#include "supervisor/group/cell/cell-limit-key.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-private.h"
#include "supervisor/pool/slot/slot.h"

/* Jobs that are counted in one turn; a slot costs as much as a job, and a cell that is woken as
 * much as WAKE_COST. */
#define COUNTED_PER_TURN 1024u
#define WAKE_COST        4u

/* ---- a walk over all cells ---- */

static void begin_walk(struct group *group, enum group_count_stage stage)
{
    struct group_count *count = &group->count;

    list_cursor_end(&count->cells);
    list_cursor_begin(&count->cells, &group->cells.cursors, &group->cells.cells, false);
    count->stage = stage;
    count->slot = 0;
    loop_defer(group->context->loop, &count->turn);
}

/* Returns what the slot costs. */
static unsigned count_slot(struct limits *limits, const struct slot *slot)
{
    list_for_each_entry (job, &slot->jobs, struct job, link)
        if (!job->limited)
            (void)limit_keys_begin(limits, job, false);
    return 1 + slot->n_jobs;
}

static unsigned visit(struct group *group, struct cell *cell)
{
    struct group_count *count = &group->count;
    const struct slot *slot = NULL;

    if (count->stage == GROUP_WAKES)
        cell_wake(cell);
    else
        slot = pool_next_slot(&cell->pool, &count->slot);
    if (slot)
        return count_slot(&group->limits, slot);
    count->slot = 0;
    list_cursor_advance(&count->cells);
    return WAKE_COST;
}

/* A job may have been taken over by a slot that the walk had passed: counts again. */
static void end_stage(struct group *group)
{
    struct group_count *count = &group->count;
    const uint64_t n_before = count->n_counted;

    list_cursor_end(&count->cells);
    if (count->stage == GROUP_WAKES)
        return;
    count->n_counted = group->limits.n_counted;
    if (limits_lack_keys(&group->limits) && count->n_counted != n_before) {
        begin_walk(group, GROUP_COUNTS);
        return;
    }
    limits_note_ending(&group->limits, -1);
    limits_end_change(&group->limits);
    begin_walk(group, GROUP_WAKES);
}

static void on_turn(struct loop_deferred *deferred)
{
    struct group *group = list_entry(deferred, struct group, count.turn);
    struct cell *cell;

    for (unsigned cost = 0; (cell = cell_table_at(&group->cells, &group->count.cells));) {
        if (cost >= COUNTED_PER_TURN) {
            loop_defer(group->context->loop, deferred);
            return;
        }
        cost += visit(group, cell);
    }
    end_stage(group);
}

void group_count_init(struct group *group)
{
    list_init(&group->count.cells.link);
    loop_deferred_init(&group->count.turn, on_turn);
}

void group_count_end(struct group *group)
{
    list_cursor_end(&group->count.cells);
    loop_undefer(&group->count.turn);
}

static bool is_counting(const struct group *group)
{
    return list_linked(&group->count.cells.link) && group->count.stage == GROUP_COUNTS;
}

void group_wake_cells(struct group *group)
{
    if (!is_counting(group)) /* else it follows */
        begin_walk(group, GROUP_WAKES);
}

/* ---- changes ---- */

void group_change_limits(struct group *group, const struct config_group *config)
{
    struct limits *limits = &group->limits;

    if (limits_use_others(limits, config))
        group_each_cell (cell, group)
            limits_leave(limits, cell);
    limits_change(limits, config);
    if (limits_lack_keys(limits) && !is_counting(group)) {
        limits_note_ending(limits, 1);
        group->count.n_counted = UINT64_MAX;
        begin_walk(group, GROUP_COUNTS);
    }
    limits_end_change(limits);
}

void group_review_key_limits(struct group *group)
{
    if (!limits_change_keys(&group->limits))
        group_change_limits(group, group->config);
    group_keep(group);
}

void group_review_limits(struct group *group)
{
    group_change_limits(group, group->config);
    group_keep(group);
}

void group_know_limits(struct group *group, bool read)
{
    struct limits *limits = &group->limits;
    const bool was_awaited = limits->known == LIMITS_AWAITED;

    if (!read && !was_awaited)
        return;
    if (limits->known == LIMITS_KNOWN && !limits_are_set(limits))
        return;
    limits->known = LIMITS_KNOWN;
    group_review_limits(group);
    if (limits->taken_over > 0)
        limits_take_over(limits);
    group_wake_cells(group);
}
