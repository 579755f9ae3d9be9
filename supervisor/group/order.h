/* SPDX-License-Identifier: MIT */
#pragma once

/* The order of groups by After=: a group starts once those before it have come up or failed, and
 * stops before they do. The configuration has no cycles. */

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

/* Starts pending groups whose turn it is. */
void order_start(struct registry *registry);

/* Strategy=rest-for-one: ends the workers of all groups that directly or indirectly come after this
 * one; they start again when it is their turn. Returns the number of workers. */
unsigned order_take_along(struct registry *registry, const struct group *before);

/* At shutdown: stops groups whose turn it is. Returns whether some are still up. */
bool order_stop(struct registry *registry);
