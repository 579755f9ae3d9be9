/* SPDX-License-Identifier: MIT */
#pragma once

/* Writes groups with their cells and workers as the elements of an array, in parts
 * (request-parts.h): all groups, or what one target names. */

#include "supervisor/config/config.h"
#include "supervisor/group/cell/cell-table.h"
#include "supervisor/group/registry.h"
#include "supervisor/varlink/request-parts.h"

/* The next thing to write. */
enum status_stage {
    STATUS_GROUP,
    STATUS_CELL,   /* within a group */
    STATUS_WORKER, /* within a cell, or within a group that has no keys */
};

/* Private. */
struct status_walk {
    struct request_parts *parts;
    enum status_stage stage;
    bool all;                             /* groups; else only `group` */
    uint64_t group;                       /* its reference */
    char name[CONFIG_GROUP_NAME_MAX + 1]; /* of that group, or of the one written last */
    char *only_key;                       /* of the only cell; NULL = all */
    size_t first, n_slots;                /* of each pool: one worker, or all */
    bool brief;                           /* no cells and no workers */
    struct cell_cursor cells;
    const struct cell *cell; /* in STATUS_WORKER: the cursor's, valid only while they are equal */
    size_t worker;           /* cursor of pool_next_slot_of() */
    usec_t oldest;           /* queued job of the cells so far */
    uint64_t n_failing;      /* of the cells so far */
    char *failing;           /* the key of the first of these; NULL = none */
};

/* `target`: NULL = all groups. `brief` is as of GetStatus. Call status_walk_deinit() in any
 * case. Returns 0 or -ENOMEM. */
int status_walk_init(struct status_walk *walk, struct request_parts *parts,
                     const struct registry_target *target, bool brief);
/* Idempotent. */
void status_walk_deinit(struct status_walk *walk);

/* As request_parts.write, .pause and .resume. */
bool status_walk_write(struct status_walk *walk);
void status_walk_pause(struct status_walk *walk);
void status_walk_resume(struct status_walk *walk);
