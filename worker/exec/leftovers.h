/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Processes that a job's command leaves behind: those that left its group, by setsid(2) or like
 * daemons. They become children of this process when they lose their parent, and end with the job.
 * `spare` is a child that is not killed and that wait(2) does not find (reader.h); 0 = none.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <sys/types.h>

/* Makes this process inherit the orphans among its descendants. Returns 0 or -errno. */
int leftovers_begin(void);

/* Reaps leftovers that have ended, but not `command`: a long job may have many. */
void leftovers_reap(pid_t command);

/*
 * Waits until the ended command can be reaped: not before its tracer ends, which may be a process
 * that it has left behind. Kills these processes. Returns false after `limit`, if another process
 * traces it.
 */
bool leftovers_untrace(pid_t command, pid_t spare, usec_t limit);

/*
 * Kills and reaps all children, and their children as they are inherited. The command itself has
 * been reaped. Returns whether none is left alive: false after `limit`, if new ones appear faster
 * than they can be killed, or if one may not be killed. A child that another process traces may
 * remain as a zombie.
 */
bool leftovers_end(pid_t spare, usec_t limit);
