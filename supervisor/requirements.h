/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The system calls that the supervisor cannot do without, and that filters of old container engines
 * refuse, because they do not know them. Every kernel that Troupe runs on has them.
 */

#include <stdbool.h>

/* Returns false after logging the name of each that is refused. */
bool requirements_met(void);
