/* SPDX-License-Identifier: MIT */
#pragma once

/* All groups, by name and by reference. The reference follows from the name alone, so that clients
 * can use it across a restart of the supervisor. */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/group/group-close.h"
#include "supervisor/group/group-command.h"
#include "supervisor/group/group-fault.h"
#include "supervisor/pool/census.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct actor;
struct cell;
struct group;
struct job;
struct slot;

struct registry {
    struct index by_reference, by_user;
    struct group *found; /* by the last registry_get(), NULL = unknown */
    size_t n_groups;
    struct group **sorted; /* by name */
    struct census census;  /* of all slots */
    struct list pending;   /* struct group.pending_link, likewise below */
    struct list removed;
    struct list down;           /* at shutdown: groups that went down */
    struct group_faults faults; /* of groups that cannot start, to be tried again */
    struct group_closings closings;
    struct group_walks walks;
    bool stopping; /* shutdown has begun */
    size_t n_up;   /* at shutdown: groups that are not known to be down */
};

void registry_init(struct registry *registry);
void registry_deinit(struct registry *registry); /* does not free groups */

/* Sets group->reference. Returns 0, -ENOMEM, or -EEXIST. */
int registry_add(struct registry *registry, struct group *group);
void registry_remove(struct registry *registry, struct group *group);

struct group *registry_find(const struct registry *registry, const char *name);
/* Like registry_find(), but for a name that is not terminated. */
struct group *registry_find_text(const struct registry *registry, const char *name, size_t size);
struct group *registry_get(struct registry *registry, uint64_t reference);
/* Returns the first group whose workers run as this user, or the one after `group`; NULL = none. */
struct group *registry_next_of_user(const struct registry *registry, uid_t uid,
                                    const struct group *group);
/* Returns the group of an address such as "group/cell/0", or NULL. */
struct group *registry_group_of(const struct registry *registry, const char *address);
/* Returns the first group whose name is behind this one ("" = the first of all), or NULL. */
struct group *registry_after(const struct registry *registry, const char *name);

/* Returns the next group in the order of their names; NULL when done. `cursor` starts at 0. */
struct group *registry_next(const struct registry *registry, size_t *cursor);
/* The body must not add or remove groups. */
#define registry_each_group(group, registry)                                                       \
    for (size_t group##_at = 0; group##_at != SIZE_MAX; group##_at = SIZE_MAX)                     \
        for (struct group *group = NULL; (group = registry_next((registry), &group##_at));)

/* Finds a target: "group", "group/slot" in a group without keys, "group/key" and "group/key/slot"
 * in one with Cells=by-key. Returns 0 or -ENOENT. */
struct registry_target {
    struct group *group;
    struct cell *cell; /* NULL = all of the group */
    struct slot *slot; /* NULL = all of the cell */
};
int registry_resolve(const struct registry *registry, const char *target,
                     struct registry_target *ret);

/* Like registry_resolve(), but also accepts cells that may have existed or may come: the members
 * that do not exist now are NULL. */
int registry_resolve_ever(const struct registry *registry, const char *target,
                          struct registry_target *ret);

/* Finds the actor of a group, cell or slot: see find_in_groups in struct message_context. */
bool registry_find_actor(void *registry, const char *address, struct actor **ret);

/* Returns the cell of the job's key in the group that OnOom= names, if it has room for the job. It
 * may be new. NULL = there is none. OnOom= is set where its own cell has its configuration from:
 * that may be the group's former one. */
struct cell *registry_find_after_oom(const struct registry *registry, const struct job *job);

/* Returns the group's name that is most like this one, or NULL. */
const char *registry_nearest(const struct registry *registry, const char *name);
