/* SPDX-License-Identifier: MIT */
#pragma once

/* Table, by id, of what the keeper holds for the next supervisor: descriptors, opaque bytes, and
 * how a process ended. Its size is fixed; the kernel backs only the pages in use. */

#include "supervisor/keeper/message.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOLDINGS_MAX     65536
#define HOLDINGS_BUCKETS 16384

struct holding {
    uint64_t id;   /* 0 = unused entry */
    uint32_t next; /* in its bucket or the free list; 1-based, 0 = none */
    pid_t pid;     /* 0 = no process */
    uint16_t size; /* of `bytes` */
    uint8_t n_fds;
    bool ended; /* `pid` is reaped */
    int fds[HOLD_FDS_MAX];
    uint8_t bytes[HOLD_BYTES_MAX];
};

/* Valid when zeroed: without a limit. Ids with consecutive low bits use the least memory. */
struct holdings {
    uint32_t buckets[HOLDINGS_BUCKETS];
    uint32_t free, n_touched;
    size_t n_fds;          /* in all holdings */
    size_t n_client_fds;   /* in holdings without a process */
    size_t client_fds_max; /* 0 = no limit */
    struct holding table[HOLDINGS_MAX];
    struct spawn_exit ends[HOLDINGS_MAX]; /* of entries that have `ended` */
};

/* Takes a HOLD, of which message_kind_of() knows the size: replaces what is held under this id, but
 * keeps how its process ended; on error nothing is left of it. Returns 0 and owns the descriptors,
 * -EBADMSG, -ENOSPC, or -EMFILE beyond `client_fds_max`. */
int holdings_put(struct holdings *holdings, const struct message *hold);
/* Replaces the first descriptor of what is held under this id, and closes the former one. Returns 0
 * and owns the descriptor, or -ENOENT if none is held. */
int holdings_replace_fd(struct holdings *holdings, uint64_t id, int fd);
/* Closes the descriptors. Idempotent. */
void holdings_remove(struct holdings *holdings, uint64_t id);

bool holdings_has(struct holdings *holdings, uint64_t id);
/* Keeps how the process of this id ended. Does nothing if the id is not held, or that is known. */
void holdings_end(struct holdings *holdings, uint64_t id, const struct spawn_exit *how);

/* Iterates over all holdings, as HELD messages without pidfds; false when done. `cursor` starts at
 * 0. The descriptors stay the table's. */
bool holdings_next(const struct holdings *holdings, uint32_t *cursor, struct message *ret);
