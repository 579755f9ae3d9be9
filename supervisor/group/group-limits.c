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

/* Jobs that are counted in one turn; a slot costs as much as a job, and so does a cell. */
#define COUNTED_PER_TURN 1024u

/* ---- a walk over all cells ---- */

static void begin_walk(struct group *group)
{
    struct group_count *count = &group->count;

    list_cursor_end(&count->cells);
    list_cursor_begin(&count->cells, &group->cells.cursors, &group->cells.cells, false);
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

static unsigned visit(struct group *group, const struct cell *cell)
{
    struct group_count *count = &group->count;
    const struct slot *slot = pool_next_slot(&cell->pool, &count->slot);

    if (slot)
        return count_slot(&group->limits, slot);
    count->slot = 0;
    list_cursor_advance(&count->cells);
    return 1;
}

/* A job may have been taken over by a slot that the walk had passed: counts again. */
static void end_walk(struct group *group)
{
    struct group_count *count = &group->count;
    const uint64_t n_before = count->n_counted;

    list_cursor_end(&count->cells);
    count->n_counted = group->limits.n_counted;
    if (limits_lack_keys(&group->limits) && count->n_counted != n_before) {
        begin_walk(group);
        return;
    }
    limits_note_ending(&group->limits, -1);
    limits_end_change(&group->limits);
    group_wake_cells(group);
}

static void on_turn(struct loop_deferred *deferred)
{
    struct group *group = list_entry(deferred, struct group, count.turn);
    const struct cell *cell;

    for (unsigned cost = 0; (cell = cell_table_at(&group->cells, &group->count.cells));) {
        if (cost >= COUNTED_PER_TURN) {
            loop_defer(group->context->loop, deferred);
            return;
        }
        cost += visit(group, cell);
    }
    end_walk(group);
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
    return list_linked(&group->count.cells.link);
}

void group_wake_cells(struct group *group)
{
    group_command(group, &(struct cell_command){.type = CELL_WAKE});
}

/* ---- changes ---- */

void group_change_limits(struct group *group, const struct config_group *config)
{
    struct limits *limits = &group->limits;

    if (limits_use_others(limits, config))
        list_for_each_entry (cell, &group->cells.live, struct cell,
                             live_link) /* others do not wait */
            limits_leave(limits, cell);
    limits_change(limits, config);
    if (limits_lack_keys(limits) && !is_counting(group)) {
        limits_note_ending(limits, 1);
        group->count.n_counted = UINT64_MAX;
        begin_walk(group);
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
