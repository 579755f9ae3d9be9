/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The processes that the keeper has started and not yet reaped, by pid. A table of fixed size;
 * pages of it that were never used cost no memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CHILDREN_MAX     65536
#define CHILDREN_BUCKETS 16384

struct child {
    pid_t pid;
    uint32_t next;  /* in its bucket, or among the free ones; 1-based, 0 = none */
    uint64_t id;    /* the supervisor's name for it; 0 = it was there before the supervisor */
    bool contained; /* it has a cgroup of its own, with which its descendants end */
};

/* All zeroes = empty. */
struct children {
    uint32_t buckets[CHILDREN_BUCKETS];
    uint32_t free;
    uint32_t n_touched;
    size_t n;
    struct child table[CHILDREN_MAX];
};

bool children_full(const struct children *children);
/* Not when full. */
void children_add(struct children *children, pid_t pid, uint64_t id, bool contained);
/* NULL if there is none; valid until children_remove(). */
const struct child *children_find(struct children *children, pid_t pid);
void children_remove(struct children *children, pid_t pid);
