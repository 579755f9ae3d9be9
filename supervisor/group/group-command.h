/* SPDX-License-Identifier: MIT */
#pragma once

/* Commands to all cells of a group: cell-command.h. The visits take several turns, with one budget
 * for all groups. */

#include "shared/base/list.h"
#include "supervisor/group/cell/cell-command.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>
#include <stdint.h>

struct group;

struct group_visits {
    struct list link;         /* in struct group_walks */
    struct list_cursor cells; /* the next one */
    uint64_t end;             /* of the commands for which this round has begun */
};

struct group_walks {
    struct list groups; /* struct group_visits.link */
    struct loop_deferred turn;
    usec_t at;                               /* monotonic: the turn of `left` */
    unsigned left;                           /* visits */
    void (*done)(struct group_walks *walks); /* no group is left; NULL = nobody waits */
};

void group_walks_init(struct group_walks *walks);

/* Notes the command, keeps what was asked of the group, and visits as many cells as may be visited
 * in this turn. The only cell of a group without keys carries the command out immediately. */
void group_command(struct group *group, const struct cell_command *command);
/* Visits all cells that are left. */
void group_commands_finish(struct group *group);
/* The group is freed. */
void group_commands_end(struct group *group);
