/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <time.h>

/* Calls methods of the control socket, one after the other, as troupectl does. */

/* Calls random methods with random pauses, until operator_rest(). `n_jobs` bounds the numbers of
 * the jobs that it cancels. */
void operator_start(const char *socket_path, unsigned n_jobs);
/* There is a schedule, tick, with a slot each `period` seconds, and with a last one. */
void operator_watch_schedule(unsigned period, time_t until);
/* Whether there is none, or the last slot's time is over. */
bool operator_sees_last_slot(void);
/* Undoes what keeps jobs from ending, then calls nothing any more. */
void operator_rest(void);
/* Has it look whether all workers are up, and nothing is left to do. Returns whether it has. */
bool operator_check(void);
