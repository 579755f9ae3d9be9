/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Checks for system calls that the supervisor needs. All supported kernels have them, but the
 * filters of old container engines do not know them and refuse them.
 */

#include <stdbool.h>

/* Returns whether all are permitted. Logs the name of each that is refused. */
bool requirements_met(void);
