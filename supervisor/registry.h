/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The groups there are, by name and by reference. A reference is an index and a generation: after
 * its group is gone it finds nothing, never another group.
 */

#include <stddef.h>
#include <stdint.h>

struct cell;
struct group;
struct slot;

struct registry_entry {
    struct group *group; /* NULL = free */
    uint32_t generation;
};

struct registry {
    struct registry_entry *entries;
    size_t n_entries;
    size_t n_groups;
};

/* clang-format off */
#define REGISTRY_NULL {0}
/* clang-format on */

void registry_deinit(struct registry *registry); /* groups are not its own */

/* Sets group->reference. 0, -ENOMEM, or -EEXIST. */
int registry_add(struct registry *registry, struct group *group);
void registry_remove(struct registry *registry, struct group *group);

struct group *registry_find(const struct registry *registry, const char *name);
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

/* The name of a group most like this one; NULL if none is near. Borrowed. */
const char *registry_nearest(const struct registry *registry, const char *name);
