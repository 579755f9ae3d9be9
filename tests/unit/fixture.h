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

/* How many entries a look-up in it may have to pass. */
unsigned longest(const struct index *index);

/* Of this process; one more, always, for the look itself. */
unsigned open_descriptors(void);

/* Has the kernel answer a system call of this process with an error, as one without it or a
 * container's profile does. */
void refuse_call(unsigned number, int error);
