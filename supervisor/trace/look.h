/* SPDX-License-Identifier: MIT */
#pragma once

/* One look at processes. */

#include "supervisor/trace/sample.h"
#include <stdbool.h>
#include <stddef.h>

/* Returns whether the number that was looked up is still that of the process behind the pidfd. */
bool is_same(void);
/* Takes the samples in a process of its own, whose end lets the targets go on. Returns 0, or -errno
 * if none is complete. */
int take_samples(struct target *targets, size_t n, const struct hints *hints);
