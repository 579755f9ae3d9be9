/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks what the submitter of a job has chosen. */

#include "shared/base/clock.h"
#include "shared/protocol/job-options.h"

/* Which option is out of bounds, by its name on the socket, and what is allowed. Both static. */
struct job_options_problem {
    const char *option, *allowed;
};

/*
 * Checks the options, and when to begin: after `delay`, or `at` a date of the clock (0 = not
 * given). NULL, or the first problem.
 */
const struct job_options_problem *job_options_check(const struct job_options *options, usec_t delay,
                                                    usec_t at);
