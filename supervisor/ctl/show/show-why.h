/* SPDX-License-Identifier: MIT */
#pragma once

/* Explains why a group is in trouble: the end of its title, and a line about its last failure. */

#include "supervisor/ctl/show/pool-view.h"
#include "supervisor/ctl/text/terminal.h"
#include <jansson.h>

/*
 * The state of a group or cell; "cannot start" if something that its configuration names is
 * missing.
 */
const char *show_group_state(const json_t *group);
/* Whether single cells are failing while the group as a whole is running or paused. */
bool show_has_failing_cells(const json_t *group);

/*
 * Adds why a group is in trouble: "100 % of the last 1,000 jobs dead (since 01:10)"; nothing for a
 * healthy group.
 */
void show_why(struct joined *why, const json_t *group, const struct pool_view *pool, usec_t now);

/*
 * Prints "Last: killed by SIGSEGV: …" and the command that shows more, for a group in trouble.
 * Returns whether it printed anything.
 */
bool show_last(const struct terminal *terminal, const json_t *group, const struct pool_view *pool,
               usec_t now);
