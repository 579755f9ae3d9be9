/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

struct invocation;

/*
 * Prints the progress of a change whose --wait timed out: "digest: still stopping: 19 of 60 have a
 * job in hand; it goes on". `doing` is a word such as "stopping". `ends`: the workers are to be
 * down in the end, otherwise up. Returns EXIT_TIMEOUT or the status of another error.
 */
int still_under_way(struct invocation *invocation, const char *target, const char *doing,
                    bool ends);
