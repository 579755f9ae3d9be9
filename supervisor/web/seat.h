/* SPDX-License-Identifier: MIT */
#pragma once

/* The seats of streams, which last as long as their browsers want. If all are taken, a further
 * stream gets that of the oldest one of the address with the most; its browser connects again. */

#include "shared/base/list.h"
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

/* Embedded in a stream. */
struct seat {
    struct list node;
    struct MHD_Connection *connection;
    int fd;        /* of the connection */
    uint64_t peer; /* the IPv4 address, or the network half of the IPv6 address; 0 = unknown */
    bool over;     /* given up: the stream ends */
};

/* Takes the last seat. The owner unlinks it. */
void seat_take(struct seat *seat, struct list *seats, struct MHD_Connection *connection);
/* Returns the seat that is to be given up so that one of `max` is free; NULL = one is free. Its
 * connection has been told to end, and its owner wakes the stream. */
struct seat *seat_make_room(const struct list *seats, unsigned max);
