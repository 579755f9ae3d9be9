/* SPDX-License-Identifier: MIT */
#pragma once

/* Parts of a supervisor around what a suite tests. */

#include "supervisor/parts.h"

/* Fills in parts for groups, their jobs and messages. `channel`: to a keeper, taken over; -1 =
 * none. */
void set_up_parts(struct parts *parts, const struct config_daemon *config, int channel);
/* The groups are freed. */
void tear_down_parts(struct parts *parts);
