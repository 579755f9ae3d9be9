/* SPDX-License-Identifier: MIT */
#pragma once

/* Table, by pid, of the processes that the keeper has started and not yet reaped. Its size is
 * fixed; the kernel backs only the pages in use. */

#include "supervisor/keeper/message.h"
#include <poll.h>
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

/* ---- processes that start ---- */

/* Descriptors of processes that still share the keeper's descriptor table (spawn.h): they stay open
 * until the process has copied them. */

#define STARTING_MAX 32
/* Copying fewer descriptors takes less time than hearing from the process that it has copied the
 * rest. */
#define STARTING_SHARE_MIN 256

struct starting_process {
    pid_t pid; /* 0 = unused */
    size_t n_fds;
    int fds[MESSAGE_FDS_MAX];
};

struct starting {
    int read_fd,
        write_fd; /* a pipe, for the indexes of those that have copied; -1 = share nothing */
    struct starting_process processes[STARTING_MAX];
};

void starting_init(struct starting *starting);
/* Sets the options to share the table if it has so many other descriptors that this is faster than
 * a copy, and if there is room. The descriptors of the options are those of `request`. */
void starting_share(const struct starting *starting, const struct message *request, size_t n_others,
                    struct spawn_options *options);
/* Takes over the descriptors of the request if the process shares the table. */
void starting_add(struct starting *starting, const struct spawn_options *options, pid_t pid,
                  struct message *request);
/* Closes what was copied. */
void starting_run(struct starting *starting);
/* Closes the descriptors of a process that has ended. */
void starting_remove(struct starting *starting, pid_t pid);
struct pollfd starting_wait(const struct starting *starting);
