/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Ends the waiting jobs of closed cells, turns away senders that wait for room, and logs the jobs
 * in hand. By then, the group takes no jobs, and its closed cells begin none. This takes several
 * turns, with one budget for all groups.
 */

#include "shared/base/list.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/job/job-id-log.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>

struct group;

struct group_closing {
    struct list link;         /* in struct group_closings */
    struct list_cursor cells; /* the next one */
    const struct cell *cell;  /* the one of `slot`; compared only */
    size_t slot;              /* the next one: pool_next_slot() */
    const char *why;          /* static */
    bool logs;                /* the jobs in hand */
    struct job_id_log in_hand, in_hand_on_disk;
    struct cell_ends ends; /* what has become of the jobs so far */
};

struct group_closings {
    struct list groups; /* struct group_closing.link */
    struct loop_deferred turn;
    void (*done)(struct group_closings *closings); /* no group is left; NULL = no caller waits */
};

void group_closings_init(struct group_closings *closings);

/* The group has stopped taking jobs: visits all of its cells, perhaps again. `why`: as in
 * group_close(); NULL = it drains, and no cell is closed. */
void group_closing_begin(struct group *group, const char *why);
/* Stops the walk where it is, and logs what was done. Idempotent. */
void group_closing_end(struct group *group);
