/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One cgroup (v2) per slot, directly under the subtree that was delegated to the supervisor:
 *
 *     trouped.service/            delegated
 *     ├─ supervisor/              supervisor and keeper: processes live in leaves only
 *     ├─ digest:0/                slot 0 of group digest
 *     ├─ digest:1/
 *     ├─ digest:1~/             its successor, while the one before still has a job, or its spare
 *     └─ mail:acme:0/           slot 0 of cell acme of group mail
 *
 * Flat, since the colon keeps a group called "cgroup.procs" or "supervisor" apart from everything
 * else.
 *
 * All of it is optional: without delegation cgroup_tree_init() says CGROUP_E_UNAVAILABLE, the other
 * functions do so too, and the caller falls back to process groups. The directories are the truth,
 * no state is kept that the kernel has.
 */

#include "supervisor/config/cgroup-limits.h"
#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    _CGROUP_E_SUCCESS,
    CGROUP_E_UNAVAILABLE, /* no delegated cgroup v2; see cgroup_tree_missing() */
    CGROUP_E_BUSY,        /* processes left in it: kill, wait for their end, try again */
};

struct cgroup_tree {
    int fd;               /* the delegated directory; -1 = unavailable */
    char *path;           /* of it, for messages */
    unsigned controllers; /* what the slots' cgroups have: bits of enum cgroup_controller */
    char text[256];       /* see cgroup_tree_text() */
    bool complete;
};

/* A group's name, a key, a number. */
#define CGROUP_NAME_SIZE 144

/* A slot's. */
struct cgroup {
    int fd; /* the directory, for CLONE_INTO_CGROUP; -1 = none: also right for struct spawn_options
             */
    char name[CGROUP_NAME_SIZE];
    uint64_t n_oom_kills; /* seen so far */
};

/* clang-format off */
#define CGROUP_TREE_NULL {.fd = -1}
#define CGROUP_NULL {.fd = -1}
/* clang-format on */

/*
 * Finds the supervisor's own cgroup (root NULL: from /proc/self/cgroup and /proc/self/mountinfo),
 * makes sure that it is delegated (another one than the root of the machine, writable), moves the
 * calling process and the keeper (0 = none) into the leaf "supervisor" and hands memory, pids, cpu
 * and io, as far as they exist, to the slots. `root` names the directory for tests; it need not be
 * a real cgroup.
 *
 * 0 (something may still be missing), CGROUP_E_UNAVAILABLE, or -errno (out of memory, of
 * descriptors).
 */
int cgroup_tree_init(struct cgroup_tree *tree, const char *root, pid_t keeper);

/* Also removes what slots left behind, as far as it is empty. Harmless on CGROUP_TREE_NULL. */
void cgroup_tree_deinit(struct cgroup_tree *tree);

/* One line for the log, why there is none or which controllers are not there; NULL = all is there.
 */
const char *cgroup_tree_missing(const struct cgroup_tree *tree);

/* For status: "one per worker; no io controller here", or why there are none. */
const char *cgroup_tree_text(const struct cgroup_tree *tree);

/*
 * Makes the cgroup of the slot called `slot` ("group/0", "group/key/0"), or takes one over that a
 * supervisor before left behind (what lives in it is killed), and sets the limits of `group` whose
 * controller exists. 0, CGROUP_E_UNAVAILABLE, -errno.
 */
int cgroup_init(struct cgroup *cgroup, const struct cgroup_tree *tree,
                const struct config_group *group, const char *slot);

/* Only closes: the directory stays. Harmless on CGROUP_NULL. */
void cgroup_deinit(struct cgroup *cgroup);

/* Writes a file of a cgroup, in one write(2). 0 or -errno. */
int cgroup_write(int directory, const char *name, const char *text);

/* Sets the limits anew, for a reload. 0, CGROUP_E_UNAVAILABLE, or the first -errno. */
int cgroup_set_limits(struct cgroup *cgroup, const struct cgroup_tree *tree,
                      const struct config_group *group);

/* What the slots' cgroups have; `tree` NULL = nothing. */
unsigned cgroup_tree_controllers(const struct cgroup_tree *tree);

/* SIGKILL to everything in it. 0 also if it is empty, CGROUP_E_UNAVAILABLE, -errno. */
int cgroup_kill(const struct cgroup *cgroup);

/* Whether the kernel's OOM killer struck in it since the last call. False also if nobody knows. */
bool cgroup_take_oom_kill(struct cgroup *cgroup);

/* Removes the directory and closes. 0 (also if there was none), CGROUP_E_BUSY (still open), -errno.
 */
int cgroup_remove(struct cgroup *cgroup, const struct cgroup_tree *tree);
