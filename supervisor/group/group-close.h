/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Cells that are closed end their jobs that wait, and turn away the senders that wait for room. A
 * group takes no job by then, and its closed cells begin none; the work that is left is done in
 * several turns, of all groups together. A walk over the cells of a group visits each once.
 */

#include "shared/base/list.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>

struct group;

struct group_closing {
    struct list link;         /* in struct group_closings */
    struct list_cursor cells; /* the next one */
    const char *why;          /* static */
    struct cell_ends ends;    /* what has become of the jobs so far */
};

struct group_closings {
    struct list groups; /* struct group_closing.link */
    struct loop_deferred turn;
    void (*done)(struct group_closings *closings); /* no group is left; NULL = nobody waits */
};

void group_closings_init(struct group_closings *closings);

/* The group has stopped taking jobs: visits all of its cells, perhaps again. `why`: as in
 * group_close(); NULL = it drains, and no cell is closed. */
void group_closing_begin(struct group *group, const char *why);
/* Does the rest in this turn. */
void group_closing_finish(struct group *group);
/* Stops where it is. Idempotent. */
void group_closing_end(struct group *group);
