/* SPDX-License-Identifier: MIT */
/* Draining for maintenance: the group takes no new jobs, works off those that can begin, and then
 * begins none. Jobs between attempts, or whose time has not come, wait on. */

#include "supervisor/group/group-private.h"

#include "supervisor/group/cell/cell-private.h"
#include <inttypes.h>

bool group_is_unread(const struct group *group)
{
    return group_awaits_restore(group) ||
           (group->rows != GROUP_READ && group_store_is_opening(group));
}

/* Jobs that are not handed out do not end. */
static bool hands_out(const struct group *group)
{
    if (!group->wanted || group->pause != CELL_RUNS || group_is_blocked(group))
        return false;
    list_for_each_entry (cell, &group->cells.live, struct cell, live_link)
        if (cell->pool.wanted && cell->pause == CELL_RUNS && job_counts_queued(&cell->counts) > 0)
            return true;
    return false;
}

static bool is_worked_off(const struct group *group)
{
    const struct job_counts *counts = &group->counts;

    return !group_is_unread(group) && counts->n[JOBS_RUNNING] == 0 && counts->n[JOBS_ENDING] == 0 &&
           !hands_out(group);
}

void group_review_drain(struct group *group)
{
    const uint64_t left = group->counts.n[JOBS_LIVE];

    if (group->drain != GROUP_DRAINS || !is_worked_off(group))
        return;
    group->drain = GROUP_WORKED_OFF;
    if (left == 0)
        group_tell(group, LOG_LEVEL_NOTICE, "group.drained", "is drained");
    else
        group_tell(group, LOG_LEVEL_NOTICE, "group.drained",
                   "is drained: nothing runs, %" PRIu64 " job%s wait%s until it is resumed", left,
                   left == 1 ? "" : "s", left == 1 ? "s" : "");
}

void group_drain(struct group *group)
{
    if (group->drain != GROUP_OPEN) {
        group_review_drain(group); /* what keeps workers from jobs may have come since */
        return;
    }
    group->drain = GROUP_DRAINS;
    group_tell(group, LOG_LEVEL_NOTICE, "group.draining",
               "drains: it takes no new jobs, and works off what it has");
    group_closing_begin(group, NULL);
    group_keep(group);
    group_review_drain(group);
}

void group_end_drain(struct group *group)
{
    if (group->drain == GROUP_OPEN)
        return;
    group->drain = GROUP_OPEN;
    group_tell(group, LOG_LEVEL_NOTICE, "group.resumed", "takes jobs again");
    group_wake_cells(group);
}
