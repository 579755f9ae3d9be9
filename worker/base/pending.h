/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a client has asked and not been answered. The number that goes over the wire names an entry
 * here, which keeps the caller's own cookie: so callers may choose any cookie, the library's own
 * questions cannot be taken for theirs, and an answer to nothing is seen.
 */

#include <stdint.h>

struct pending_entry {
    uint64_t cookie;
    uint32_t generation; /* 31 bits; odd while it waits for an answer */
    uint32_t next_free;
};

struct pending {
    struct pending_entry *entries;
    uint32_t size;
    uint32_t first_free; /* == size: none */
};

/* 0 and a number for the wire, whose highest bit is 0, or -ENOMEM. */
int pending_take(struct pending *pending, uint64_t cookie, uint64_t *ret_number);

/* The cookie under a number, which stays. -EPROTO when nothing waits under it. */
int pending_look(const struct pending *pending, uint64_t number, uint64_t *ret_cookie);

/* Gives the cookie and forgets the number. -EPROTO when nothing waits under it. */
int pending_give(struct pending *pending, uint64_t number, uint64_t *ret_cookie);

void pending_deinit(struct pending *pending);
