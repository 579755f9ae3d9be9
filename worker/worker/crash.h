/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Evidence of a crash: on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, tells the supervisor where
 * the registers are, and waits until it has looked at the stacks, at most 40 ms. Then the signal
 * acts as if there were no handler: the status of the process, and core dumps, are the same.
 *
 * A signal for which the program has a handler is left to it. In Python, that handler, which is
 * faulthandler's, runs afterwards. To find a stack overflow, a handler needs a stack of its own:
 * the calling thread gets one, unless it has one.
 */

#include "shared/ring/channel.h"

/* Call it when the worker begins. Does nothing if the supervisor wants no evidence. */
void crash_watch(const struct channel *channel);
/* The channel is about to go. */
void crash_forget(void);
