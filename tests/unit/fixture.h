/* SPDX-License-Identifier: MIT */
#pragma once

/* What many suites need around what they test. */

#include "shared/base/index.h"
#include "supervisor/loop/loop.h"

/* A loop with the default options. The caller frees it. */
struct loop *new_loop(void);

/* Fails the test if the loop runs for so long; USEC_INFINITY: not any more. For one loop at a time.
 */
void give_up_after(struct loop *loop, usec_t duration);

/* Discards log lines. */
void log_nothing(void);

/* Returns the largest number of entries that a look-up in the index may have to pass. */
unsigned longest(const struct index *index);

/* Counts this process's descriptors, and always one more, which counting itself needs. */
unsigned open_descriptors(void);

/* Makes the kernel fail a system call of this process with an error, like a kernel without that
 * call, or a container's profile. */
void refuse_call(unsigned number, int error);
