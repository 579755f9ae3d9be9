/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Tells whose memory limit it was when the OOM killer has killed in the cgroup of a worker. The
 * kernel counts in memory.events which cgroup was over its limit, and where processes were killed;
 * systemd-oomd leaves a mark on the cgroups that it kills. All of it goes with the cgroup, so it is
 * read before that is removed.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroup;
struct cgroup_tree;

/* How many cgroups above the workers' are looked at. */
#define OOM_LEVELS 8

/* The counts of a worker's cgroup so far. */
struct oom_counts {
    uint64_t kills;   /* processes in it that the kernel's OOM killer has killed */
    uint64_t own;     /* how often it, or a cgroup in it, was over its own limit */
    uint64_t by_oomd; /* kills by systemd-oomd */
};

/* How often the cgroups above were over their limits; [0] = the delegated one. */
struct oom_above {
    uint64_t n[OOM_LEVELS];
    usec_t changed_at[OOM_LEVELS]; /* when that was seen to have grown; 0 = never */
};

enum oom_limit {
    OOM_OF_WORKER,  /* MemoryMax= of its group, or less in a cgroup that it has made */
    OOM_OF_ABOVE,   /* of the service, or of a slice */
    OOM_OF_MACHINE, /* no limit: there was no memory left */
    OOM_OF_OOMD,    /* none either: systemd-oomd chose it */
    _OOM_N_LIMITS,
};

struct oom {
    enum oom_limit limit;
    char above[64];   /* OOM_OF_ABOVE: "trouped.service" */
    uint64_t max;     /* of that cgroup, in bytes; 0 = none, or unknown */
    uint64_t peak;    /* of the worker; 0 = unknown */
    unsigned stalled; /* of the worker: percent of the last 10 seconds that it waited for memory */
};

/* Takes the present counts as known. */
void oom_begin(struct cgroup *cgroup);
void oom_begin_above(struct cgroup_tree *tree);

/* Returns whether there were kills in this cgroup since the last call, with `*ret` whose limit it
 * was. False if unknown. `now`: monotonic. */
bool oom_take(struct cgroup *cgroup, struct cgroup_tree *tree, usec_t now, struct oom *ret);

/* Writes "its own limit (MemoryMax=64M), peak 64M, …". */
void oom_describe(const struct oom *oom, char *text, size_t size);
