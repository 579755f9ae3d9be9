/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One cgroup (v2) per slot, directly below the cgroup that is delegated to the supervisor:
 *
 *     trouped.service/            delegated
 *     ├─ supervisor/              supervisor and keeper: processes live in leaves only
 *     ├─ digest:0/                slot 0 of group digest
 *     ├─ digest:1/
 *     ├─ digest:1~/               its successor, while the old worker still has a job, or its spare
 *     └─ mail:acme:0/             slot 0 of cell acme of group mail
 *
 * The colon keeps the name of a group from clashing with "supervisor" or a file such as
 * "cgroup.procs".
 *
 * Cgroups are optional. Without delegation these functions return CGROUP_E_UNAVAILABLE, and the
 * caller uses process groups.
 */

#include "shared/base/list.h"
#include "supervisor/config/cgroup-limits.h"
#include "supervisor/config/config.h"
#include "supervisor/process/cgroup-oom.h"
#include <stdbool.h>
#include <stdint.h>

struct loop;

enum {
    _CGROUP_E_SUCCESS,
    CGROUP_E_UNAVAILABLE, /* no delegated cgroup v2; see cgroup_tree_missing() */
};

struct cgroup_tree {
    int fd;               /* the delegated directory; -1 = unavailable */
    char *path;           /* of the directory, for messages */
    unsigned controllers; /* enabled for the slots: bits of enum cgroup_controller */
    char text[256]; /* for the status: "one per worker; no io controller here", or why there are
                       none */
    bool complete;
    uint64_t *adopted; /* inodes of the cgroups that cgroup_tree_sweep() spares */
    size_t n_adopted;
    struct loop *loop;     /* set by the owner; NULL = cgroups that are left stay until the end */
    struct list leftovers; /* struct leftover.link */
    unsigned n_waits;      /* during cgroup_tree_deinit() */
    struct oom_above oom;  /* seen so far */
};

/* The cgroup of a slot. */
struct cgroup {
    int fd; /* the directory, for CLONE_INTO_CGROUP; -1 = none: also right for struct spawn_options
             */
    char *name;
    struct oom_counts oom; /* seen so far */
};

/* clang-format off */
#define CGROUP_TREE_NULL {.fd = -1}
#define CGROUP_NULL {.fd = -1}
/* clang-format on */

/*
 * Finds the supervisor's own cgroup (root NULL: from /proc/self/cgroup and /proc/self/mountinfo),
 * checks that it is delegated (not the root, and writable), moves the calling process and the
 * keeper (0 = none) into the leaf "supervisor", and enables memory, pids, cpu, io and cpuset,
 * where they exist, for the slots. `root` names the directory for tests; it need not be a real
 * cgroup.
 *
 * Returns 0 (controllers may still be missing), CGROUP_E_UNAVAILABLE, or -errno (out of memory or
 * descriptors).
 */
int cgroup_tree_init(struct cgroup_tree *tree, const char *root, pid_t keeper);

/* Also removes empty cgroups that slots have left. Harmless on CGROUP_TREE_NULL. */
void cgroup_tree_deinit(struct cgroup_tree *tree);

/* Kills the processes in the cgroups of an earlier supervisor's slots that were not adopted. Called
 * once, before the first cgroup_init(). */
void cgroup_tree_sweep(struct cgroup_tree *tree);

/* Returns a line for the log: why there are no cgroups, or which controllers are missing. NULL =
 * complete. */
const char *cgroup_tree_missing(const struct cgroup_tree *tree);

/*
 * Makes the cgroup of the slot named `slot` ("group/0", "group/key/0"), or takes over an earlier
 * supervisor's, killing its processes. Sets the limits of `group` whose controller exists. Returns
 * 0, CGROUP_E_UNAVAILABLE or -errno.
 */
int cgroup_init(struct cgroup *cgroup, struct cgroup_tree *tree, const struct config_group *group,
                const char *slot);

/* Opens the cgroup that an earlier supervisor has made for this slot, with the processes in it.
 * Returns 0, CGROUP_E_UNAVAILABLE (also if it is gone) or -errno. */
int cgroup_adopt(struct cgroup *cgroup, struct cgroup_tree *tree, const char *slot);

/* Opens the cgroup of another process. Returns 0, CGROUP_E_UNAVAILABLE or -errno. */
int cgroup_share(struct cgroup *cgroup, const struct cgroup *other);

/* Only closes and frees; the directory stays. Harmless on CGROUP_NULL. */
void cgroup_deinit(struct cgroup *cgroup);

/* Writes a file of a cgroup, in one write(2). Returns 0 or -errno. */
int cgroup_write(int directory, const char *name, const char *text);

/* Sets the limits again after a reload. Returns 0, CGROUP_E_UNAVAILABLE, or the first -errno. */
int cgroup_set_limits(struct cgroup *cgroup, const struct cgroup_tree *tree,
                      const struct config_group *group);

/* Has the kernel take back all memory that its processes do not use, in another thread. Returns 0,
 * CGROUP_E_UNAVAILABLE (also without the controller), or -errno. */
int cgroup_reclaim(const struct cgroup *cgroup);

/* Returns the controllers of the slots' cgroups; 0 if `tree` is NULL. */
unsigned cgroup_tree_controllers(const struct cgroup_tree *tree);

/* Sends SIGKILL to all processes in it. Returns 0 (also if it is empty), CGROUP_E_UNAVAILABLE or
 * -errno. */
int cgroup_kill(const struct cgroup *cgroup);

/* Closes the directory, and removes it once no process is left in it. Harmless on CGROUP_NULL. */
void cgroup_leave(struct cgroup *cgroup, struct cgroup_tree *tree);
/* Like cgroup_leave(), for the directory of this name. */
void cgroup_leave_directory(struct cgroup_tree *tree, const char *name);
/* Closes what is left, and lets it be. */
void cgroup_forget_leftovers(struct cgroup_tree *tree);
