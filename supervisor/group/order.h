/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The order between groups that After= asks for: a group starts once those before it have come up
 * (or have been seen to fail: a broken group holds nobody up for ever), and stops before they do.
 * Cycles are refused with the configuration.
 */

#include <stdbool.h>

struct group;
struct registry;

/* Starts every group that is pending and whose turn it is. */
void order_start(struct registry *registry);

/* Notes in all groups whether they come after `before`, themselves or by way of others. */
void order_find_followers(struct registry *registry, const struct group *before);

/* At shutdown, which there is no way back from: stops every group whose turn it is. Whether some
 * are still up. */
bool order_stop(struct registry *registry);
