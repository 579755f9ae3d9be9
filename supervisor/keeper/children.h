/* SPDX-License-Identifier: MIT */
#pragma once

/* The processes that the keeper has started and not yet reaped, by pid. */

#include "supervisor/keeper/id-table.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CHILD_UNKNOWN UINT64_MAX

struct child {
    pid_t pid;
    uint64_t id;    /* chosen by the supervisor; 0 = older than trouped; CHILD_UNKNOWN = its
                       supervisor has ended */
    bool contained; /* has its own cgroup or PID namespace, which ends its descendants */
    bool spared;    /* its descendants are not killed when it ends (MESSAGE_SPARE) */
    bool ended;     /* is reaped, and only listed because it is `spared` */
    pid_t pump;     /* through which its output passes; 0 = none */
    uint32_t owner; /* of a process with a pump, and of a pump */
};

/* Valid when zeroed. */
struct children {
    struct id_table pids;
    struct child at[ID_TABLE_MAX];
};

/* Returns whether there is room for a process and its pump. */
bool children_have_room(const struct children *children);
/* Adds a child. Replaces one of the same pid, which was spared and has ended. Does nothing if the
 * table is full. */
void children_add(struct children *children, pid_t pid, uint64_t id, bool contained);
/* Returns NULL if there is none. Valid until children_remove(). */
struct child *children_find(struct children *children, pid_t pid);
void children_remove(struct children *children, pid_t pid); /* idempotent */
