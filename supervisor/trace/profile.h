/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Takes many samples of a process and counts its stacks. Three processes share the work: this one
 * keeps the time, and reads nothing hostile; a new one for each sample stops the threads and copies
 * their stacks; a confined one, which stays, unwinds the copies, and so loads each module once. The
 * threads are stopped for at most one part in PROFILE_SHARE of the time.
 */

#include "shared/base/clock.h"
#include "shared/protocol/trace.h"
#include "supervisor/trace/sample.h"

#define PROFILE_INTERVAL (40 * USEC_PER_MSEC)
#define PROFILE_SHARE    64

/* Ends after `duration`, with the process, or when the supervisor says so. Returns 0 or -errno. */
int profile(const struct hints *hints, usec_t duration, struct trace_output *output);
