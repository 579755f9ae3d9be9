/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks the options of a job. */

#include "shared/base/clock.h"
#include "shared/protocol/job-options.h"

/* An option that is out of bounds, by its Varlink name, and the permitted values. Both static. */
struct job_options_problem {
    const char *option, *allowed;
};

/* Checks the options and the start, after `delay` or at the date `at` (0 = not given). Returns the
 * first problem, or NULL. */
const struct job_options_problem *job_options_check(const struct job_options *options, usec_t delay,
                                                    usec_t at);
