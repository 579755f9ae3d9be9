/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Requests of a client that are not answered yet. The number on the wire finds the caller's cookie
 * here, so callers may choose any cookie, and an answer to nothing is detected.
 */

#include "shared/base/handle-table.h"

struct pending {
    struct handle_table table; /* its objects say only that an entry is in use */
    uint64_t *cookies;         /* by index */
    uint32_t n_cookies;
};

/* Returns 0 and a number whose highest bit is 0, or -ENOMEM. */
int pending_take(struct pending *pending, uint64_t cookie, uint64_t *ret_number);

/* Returns the cookie and forgets the number, or -EPROTO if nothing waits under it. */
int pending_give(struct pending *pending, uint64_t number, uint64_t *ret_cookie);

void pending_deinit(struct pending *pending);
