/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Descriptors that a worker inherits from the supervisor, by numbers in its environment:
 *
 *   TROUPE_INBOX TROUPE_OUTBOX TROUPE_CONTROL   always
 *   TROUPE_WAIT                                 an eventfd to sleep on, always
 *   TROUPE_WAKE                                 an eventfd to wake the supervisor, with eventfd
 *   TROUPE_WORKER TROUPE_GENERATION             name and generation of this process
 *   TROUPE_PRIVATE_TMP                          "job" with PrivateTmp=job
 */

#include "shared/ring/channel.h"
#include <stdbool.h>
#include <stdint.h>

struct inherited {
    struct channel_fds fds;
    int control;
    char *name;
    uint64_t generation;
    bool job_tmp; /* the private directories are emptied before each job */
};

/* clang-format off */
#define INHERITED_NULL {.fds = CHANNEL_FDS_NULL, .control = -1}
/* clang-format on */

/*
 * Unsets the variables and marks the descriptors close-on-exec, so that children inherit neither.
 * Returns 0, -ENOTCONN if there are none, -EPROTO if they are invalid (closes what is valid), or
 * -ENOMEM.
 */
int inherit(struct inherited *ret);

/* Closes and frees everything. */
void inherited_deinit(struct inherited *inherited);
