/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * All groups, by name and by reference. A reference is a handle (shared/base/handle-table.h): after
 * its group is gone it finds nothing, never another group.
 */

#include "shared/base/handle-table.h"
#include "shared/base/list.h"
#include "supervisor/pool/census.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct cell;
struct group;
struct slot;

struct registry {
    struct handle_table groups; /* by reference */
    size_t n_groups;
    struct group **sorted; /* by name */
    struct census census;  /* of all slots */
    struct list pending;   /* struct group.pending_link, likewise below */
    struct list removed;
    struct list down; /* went down while everything stops */
    bool stopping;
    size_t n_up; /* while everything stops: groups that are not known to be down */
};

void registry_init(struct registry *registry);
void registry_deinit(struct registry *registry); /* groups are not its own */

/* Sets group->reference. 0, -ENOMEM, or -EEXIST. */
int registry_add(struct registry *registry, struct group *group);
void registry_remove(struct registry *registry, struct group *group);

struct group *registry_find(const struct registry *registry, const char *name);
/* The group that an address such as "group/cell/0" lies in; NULL if there is none. */
struct group *registry_group_of(const struct registry *registry, const char *address);
/* The first one whose name is behind that one ("" = of all) in the order of names; or NULL. */
struct group *registry_after(const struct registry *registry, const char *name);
struct group *registry_get(const struct registry *registry, uint64_t reference);

/* Iterates over all groups, in no order that matters. NULL when done; `cursor` starts at 0. */
struct group *registry_next(const struct registry *registry, size_t *cursor);

/*
 * What a target names: "group", "group/slot" in a group without keys, "group/key" and
 * "group/key/slot" in one with Cells=by-key. 0 or -ENOENT.
 */
struct registry_target {
    struct group *group;
    struct cell *cell; /* NULL = all of the group */
    struct slot *slot; /* NULL = all of the cell */
};
int registry_resolve(const struct registry *registry, const char *target,
                     struct registry_target *ret);

/*
 * The same for what may be over, or still to come: also every possible cell, with any worker, of a
 * group with Cells=by-key. What is not there now is NULL. 0 or -ENOENT.
 */
int registry_resolve_ever(const struct registry *registry, const char *target,
                          struct registry_target *ret);

/* The actor of a group, cell or slot: see find_in_groups in struct message_context. */
bool registry_find_actor(void *registry, const char *address, struct actor **ret);

/* The name of a group most like this one; NULL if none is near. Borrowed. */
const char *registry_nearest(const struct registry *registry, const char *name);
