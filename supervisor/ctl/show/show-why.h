/* SPDX-License-Identifier: MIT */
#pragma once

/* Why a group is not well: the end of its title, and the line about what happened last. */

#include "supervisor/ctl/show/pool.h"
#include "supervisor/ctl/text/terminal.h"
#include <jansson.h>

/* The word for the state of a group or cell: "cannot start" for one that its own configuration
 * keeps from starting. */
const char *show_group_state(const json_t *group);

/* " – 100 % of the last 1,000 jobs dead (since 01:10)"; "" for a group that is well. The caller's
 * to free; NULL when out of memory. */
char *show_why(const json_t *group, const struct pool *pool, usec_t now);

/* "Last: killed by SIGSEGV: …" and the command that shows more, for a group that is not well.
 * Whether there was anything to show. */
bool show_last(const struct terminal *terminal, const json_t *group, const struct pool *pool,
               usec_t now);
