/* SPDX-License-Identifier: MIT */
#pragma once

/* What many suites need around what they test. */

#include "supervisor/loop/loop.h"

/* A loop with the default options. The caller frees it. */
struct loop *new_loop(void);

/* Fails the test if the loop runs for so long; USEC_INFINITY: not any more. For one loop at a time.
 */
void give_up_after(struct loop *loop, usec_t duration);

/* Discards log lines. */
void log_nothing(void);
