/* SPDX-License-Identifier: MIT */
#pragma once

/* The order of groups by After=: a group starts once those before it have come up or failed, and
 * stops before they do. The configuration has no cycles. */

#include <stdbool.h>
#include <stddef.h>

struct registry;

/* What order.c notes in a group. */
struct order_node {
    size_t n_followers_up; /* at shutdown: groups that stop before this one */
    bool stopped;          /* at shutdown: the group stays down */
};

/* Starts pending groups whose turn it is. */
void order_start(struct registry *registry);

/* At shutdown: stops groups whose turn it is. Returns whether some are still up. */
bool order_stop(struct registry *registry);
