/* SPDX-License-Identifier: MIT */
#pragma once

/* Whether one program can take over from another: only if both keep the same fields of all that
 * outlives a supervisor. */

#include <stdint.h>

/* Returns a digest of the tables of all records, and of the versions of what no table describes. */
uint64_t upgrade_layout(void);
