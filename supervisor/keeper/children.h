/* SPDX-License-Identifier: MIT */
#pragma once

/* Table, by pid, of the processes that the keeper has started and not yet reaped. Its size is
 * fixed; the kernel backs only the pages in use. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CHILDREN_MAX     65536
#define CHILDREN_BUCKETS 16384

#define CHILD_UNKNOWN UINT64_MAX

struct child {
    pid_t pid;
    uint32_t next;  /* in its bucket or the free list; 1-based, 0 = none */
    uint64_t id;    /* chosen by the supervisor; 0 = older than trouped; CHILD_UNKNOWN = its
                       supervisor has ended */
    bool contained; /* has its own cgroup or PID namespace, which ends its descendants */
    bool spared;    /* its descendants are not killed when it ends (MESSAGE_SPARE) */
    bool ended;     /* is reaped, and only listed because it is `spared` */
};

/* Valid when zeroed. */
struct children {
    uint32_t buckets[CHILDREN_BUCKETS];
    uint32_t free;
    uint32_t n_touched;
    size_t n;
    struct child table[CHILDREN_MAX];
};

bool children_full(const struct children *children);
/* Requires !children_full(). */
void children_add(struct children *children, pid_t pid, uint64_t id, bool contained);
/* Returns NULL if there is none. Valid until children_remove(). */
struct child *children_find(struct children *children, pid_t pid);
void children_remove(struct children *children, pid_t pid);
/* Calls `fn` with each child. `fn` must not add children, and may remove only its own argument. */
void children_each(struct children *children, void (*fn)(struct child *child));
