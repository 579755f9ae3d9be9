/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Watches pressure (PSI): the kernel reports when some task has waited for a resource for longer
 * than a threshold within PRESSURE_WINDOW, at most once per window. It is that of the supervisor's
 * cgroup, so of all workers, or without one that of the machine.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/loop.h"
#include <stdint.h>

struct cgroup_tree;

#define PRESSURE_WINDOW (2 * USEC_PER_SEC)

enum pressure_kind {
    PRESSURE_MEMORY,
    PRESSURE_CPU,
    PRESSURE_IO,
    _PRESSURE_N_KINDS,
};

struct pressure_watch {
    enum pressure_kind kind;
    int fd; /* -1 = not watched */
    struct loop *loop;
    struct loop_watch watch;
    void (*risen)(struct pressure_watch *watch); /* the threshold was passed */
};

/* "memory", "cpu" or "io". */
const char *pressure_kind_to_string(enum pressure_kind kind);

/* Opens the file of a kind of pressure. `tree` NULL, or without cgroups: that of the machine.
 * Returns a descriptor, or -errno. */
int pressure_open(const struct cgroup_tree *tree, enum pressure_kind kind);

/* Takes over `fd` of pressure_open(), even on error. `risen` is called each time that the threshold
 * (up to PRESSURE_WINDOW) was passed, until pressure_unwatch(). Returns 0 or -errno. */
int pressure_watch(struct pressure_watch *watch, struct loop *loop, enum pressure_kind kind, int fd,
                   usec_t threshold, void (*risen)(struct pressure_watch *watch));
/* Idempotent; harmless on a zeroed struct. */
void pressure_unwatch(struct pressure_watch *watch);

/* Returns how much of each second some task has waited, on average of the last ten, in µs; 0 if
 * that cannot be read. */
usec_t pressure_read(const struct pressure_watch *watch);
