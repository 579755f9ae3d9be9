/* SPDX-License-Identifier: MIT */
#pragma once

/* Holds descriptors, opaque bytes, and how a process ended, by id, for the next supervisor. */

#include "supervisor/keeper/id-table.h"
#include "supervisor/keeper/message.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct holding {
    uint64_t id;
    pid_t pid;     /* 0 = no process */
    uint16_t size; /* of `bytes` */
    uint8_t n_fds;
    bool ended; /* `pid` is reaped */
    int fds[HOLD_FDS_MAX];
    uint8_t bytes[HOLD_BYTES_MAX];
};

/* Valid when zeroed: without a limit. */
struct holdings {
    struct id_table ids;
    size_t n_client_fds;   /* in holdings without a process */
    size_t client_fds_max; /* 0 = no limit */
    struct holding at[ID_TABLE_MAX];
    struct spawn_exit ends[ID_TABLE_MAX]; /* of those that have `ended` */
};

/* Takes a HOLD, of which message_kind_of() knows the size: replaces what is held under this id, but
 * keeps how its process ended; on error nothing is left of it. Returns 0 and owns the descriptors,
 * -EBADMSG, -ENOSPC, or -EMFILE beyond `client_fds_max`. */
int holdings_put(struct holdings *holdings, const struct message *hold);
/* Closes the descriptors. Idempotent. */
void holdings_remove(struct holdings *holdings, uint64_t id);

bool holdings_has(struct holdings *holdings, uint64_t id);
/* Keeps how the process of this id ended. Does nothing if the id is not held, or that is known. */
void holdings_end(struct holdings *holdings, uint64_t id, const struct spawn_exit *how);

/* Iterates over all holdings, as HELD messages without pidfds; false when done. `cursor` starts at
 * 0. The descriptors stay the table's. */
bool holdings_next(const struct holdings *holdings, uint32_t *cursor, struct message *ret);
