/* SPDX-License-Identifier: MIT */
#pragma once

/* Takes one sample of each of some processes. */

#include "supervisor/trace/sample.h"
#include <stdbool.h>
#include <stddef.h>

/* Returns whether the process behind the pidfd exists: then its pid has not been reused. */
bool look_is_valid(void);
/* Takes the samples in a new process; when that ends, the targets continue. Returns 0, or -errno if
 * no sample is complete. */
int look_take(struct target *targets, size_t n, const struct hints *hints);
