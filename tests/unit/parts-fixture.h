/* SPDX-License-Identifier: MIT */
#pragma once

/* Parts of a supervisor around what a suite tests. */

#include "supervisor/parts.h"

/* Fills in parts for groups, their jobs and messages. `channel`: to a keeper, taken over; -1 =
 * none. */
void set_up_parts(struct parts *parts, const struct config_daemon *config, int channel);
/* The groups are freed. */
void tear_down_parts(struct parts *parts);

/* Makes a configuration whose workers are /bin/false. */
struct config_group *new_group_config(const char *name);
/* Takes the configuration over. */
struct group *add_group(struct parts *parts, struct config_group *config);
/* Closes it, and ends all of its jobs that do not run. */
void close_group(struct group *group, const char *why);
void remove_group(struct parts *parts, struct group *group);
