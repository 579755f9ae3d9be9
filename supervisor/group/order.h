/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The order between groups that After= asks for: a group starts once those before it have come up
 * (or have been seen to fail: a broken group holds nobody up for ever), and stops before they do.
 * Cycles are refused with the configuration.
 */

#include <stdbool.h>
#include <stddef.h>

struct group;
struct registry;

/* What order.c notes in a group. */
struct order_node {
    bool visited, follows; /* while it searches for the groups that come after one */
    size_t n_followers_up; /* at shutdown: groups that stop before this one */
    bool stopped;          /* at shutdown: the group is down for good */
};

/* Starts every group that is pending and whose turn it is. */
void order_start(struct registry *registry);

/* Strategy=rest-for-one: ends the workers of all groups that come after this one, themselves or by
 * way of others; they start again when it is their turn. The number of workers. */
unsigned order_take_along(struct registry *registry, const struct group *before);

/* At shutdown, which there is no way back from: stops every group whose turn it is. Whether some
 * are still up. */
bool order_stop(struct registry *registry);
