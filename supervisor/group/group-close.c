/* SPDX-License-Identifier: MIT */
#include "supervisor/group/group-close.h"

#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/pool/slot/slot.h"
#include <inttypes.h>

/* Jobs, senders and slots, of all groups, that are looked at in one turn. */
#define CLOSES_PER_TURN 1024u

static struct group_closings *closings_of(const struct group *group)
{
    return &group->context->registry->closings;
}

/* Logs what has become of the jobs that waited. */
static void log_ends(const struct group *group)
{
    const struct log_fields fields = LOG_FIELDS({"TROUPE_GROUP", group->name});
    const uint64_t n = group->closing.ends.n_cancelled, n_left = group->closing.ends.n_left;
    const char *why = group->closing.why;

    if (n > 0)
        log_write(LOG_LEVEL_WARNING, fields, "%s: %" PRIu64 " job%s that waited %s cancelled: %s",
                  group->name, n, n == 1 ? "" : "s", n == 1 ? "is" : "are", why);
    if (n_left > 0)
        log_write(LOG_LEVEL_NOTICE, fields, "%s: %" PRIu64 " job%s on disk: %s", group->name,
                  n_left, n_left == 1 ? " that waits stays" : "s that wait stay", why);
}

void group_closing_end(struct group *group)
{
    if (!list_linked(&group->closing.link))
        return;
    log_ends(group);
    job_id_log_end(&group->closing.in_hand, group->name);
    job_id_log_end(&group->closing.in_hand_on_disk, group->name);
    list_unlink(&group->closing.link);
    list_cursor_end(&group->closing.cells);
}

static void log_in_hand(struct group_closing *closing, const struct group *group,
                        const struct slot *slot)
{
    list_for_each_entry (job, &slot->jobs, struct job, link)
        if (job->record)
            job_id_log_add(&closing->in_hand_on_disk, group->name,
                           "in hand; stay on disk unless they end", job);
        else
            job_id_log_add(&closing->in_hand, group->name,
                           "in hand; not retried if the attempt fails", job);
}

/* Returns false if there is nothing left to do. */
static bool close_next(struct group *group)
{
    struct group_closing *closing = &group->closing;
    struct cell *cell = cell_table_at(&group->cells, &closing->cells);
    const struct slot *slot;

    /* If the group takes jobs again, it keeps those that are left. */
    if (!cell || group_takes_jobs(group) == 0)
        return false;
    cell_catch_up(cell);
    /* It would never run its queue. */
    if (group->removal != GROUP_STAYS && !cell->pool.wanted && closing->why)
        cell->closed = closing->why;
    if (cell_close_next(cell, &closing->ends))
        return true;
    if (closing->cell != cell)
        closing->slot = 0;
    closing->cell = cell;
    slot = closing->logs ? pool_next_slot(&cell->pool, &closing->slot) : NULL;
    if (slot) {
        log_in_hand(closing, group, slot);
        return true;
    }
    list_cursor_advance(&closing->cells);
    return true;
}

static void on_turn(struct loop_deferred *deferred)
{
    struct group_closings *closings = list_entry(deferred, struct group_closings, turn);
    unsigned left = fault_inject("closing") < 0 ? 0 : CLOSES_PER_TURN;

    FAULT_POINT("group.closing");
    list_until_empty (group, &closings->groups, struct group, closing.link) {
        if (left-- == 0) {
            loop_defer(group->context->loop, deferred);
            return;
        }
        if (!close_next(group))
            group_closing_end(group);
    }
    if (closings->done)
        closings->done(closings);
}

void group_closings_init(struct group_closings *closings)
{
    *closings = (struct group_closings){0};
    list_init(&closings->groups);
    loop_deferred_init(&closings->turn, on_turn);
}

void group_closing_begin(struct group *group, const char *why)
{
    struct group_closing *closing = &group->closing;
    struct group_closings *closings = closings_of(group);

    if (list_linked(&closing->link)) {
        list_cursor_end(&closing->cells);
    } else {
        list_push_back(&closings->groups, &closing->link);
        closing->why = NULL;
        closing->logs = false;
        closing->ends = (struct cell_ends){0};
    }
    closing->cell = NULL;
    list_cursor_begin(&closing->cells, &group->cells.cursors, &group->cells.cells, false);
    if (why)
        closing->why = why;
    loop_defer(group->context->loop, &closings->turn);
}
