/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

struct invocation;

/*
 * Says how far a change of `target` has come whose --wait ran out of time: "digest: still stopping:
 * 19 of 60 have a job in hand; it goes on". `doing`: "stopping" and the like. `ends`: its workers
 * are to be down in the end, else up. EXIT_TIMEOUT, or what went wrong.
 */
int still_under_way(struct invocation *invocation, const char *target, const char *doing,
                    bool ends);
