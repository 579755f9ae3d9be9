/* SPDX-License-Identifier: MIT */
#pragma once

/* Tells somebody who waits for a job, once, why no worker begins it: otherwise a worker that cannot
 * start looks like a job that takes long. Nothing is said of waits that end by themselves. */

#include "shared/base/clock.h"
#include <stdbool.h>

struct invocation;

struct hint {
    const struct invocation *invocation; /* borrowed */
    usec_t at;                           /* monotonic: when to ask next; infinity = never */
    usec_t pause;
};

/* For a wait that begins now; it says nothing with --quiet. */
struct hint hint_make(const struct invocation *invocation);

/* Something has ended: waits again before it asks. */
void hint_put_off(struct hint *hint);

/* Whether it is time for hint_ask(). */
bool hint_due(const struct hint *hint);

/* Asks the supervisor what the job waits for, and waits a second at most for the answer. Errors are
 * not reported: the wait itself meets them. */
void hint_ask(struct hint *hint, const char *id);
