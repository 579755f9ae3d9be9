/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* Calls methods of the control socket, one after the other, as troupectl does. */

/* Calls random methods with random pauses, until operator_rest(). `n_jobs` bounds the numbers of
 * the jobs that it cancels. */
void operator_start(const char *socket_path, unsigned n_jobs);
/* Undoes what keeps jobs from ending, then calls nothing any more. */
void operator_rest(void);
/* Has it look whether all workers are up, and nothing is left to do. Returns whether it has. */
bool operator_check(void);
