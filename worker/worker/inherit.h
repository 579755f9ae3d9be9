/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a worker inherits from the supervisor: descriptors, by the numbers that stand in its
 * environment.
 *
 *   TROUPE_INBOX TROUPE_OUTBOX TROUPE_CONTROL   always
 *   TROUPE_WAIT                                 an eventfd to sleep on, always
 *   TROUPE_WAKE                                 one to wake the supervisor, with that back end
 *   TROUPE_WORKER TROUPE_GENERATION             who this process is
 */

#include "shared/ring/channel.h"
#include <stdint.h>

struct inherited {
    struct channel_fds fds;
    int control;
    char *name;
    uint64_t generation;
};

/* clang-format off */
#define INHERITED_NULL {.fds = CHANNEL_FDS_NULL, .control = -1}
/* clang-format on */

/*
 * Consumes the variables and marks the descriptors close-on-exec, so that a child of the worker
 * inherits neither. 0, -ENOTCONN when there are none, -EPROTO when they make no sense (what does is
 * closed then), -ENOMEM.
 */
int inherit(struct inherited *ret);

/* Closes everything that has not been taken out. */
void inherited_deinit(struct inherited *inherited);
