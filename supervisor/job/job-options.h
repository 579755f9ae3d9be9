/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the submitter of a job may choose and a requeue keeps. PROTOCOL_DEFAULT_RETRIES,
 * PROTOCOL_DEFAULT_USEC and PROTOCOL_DEFAULT_PRIORITY stand for the group's own value.
 */

#include "shared/base/clock.h"
#include "shared/protocol/job-bounds.h"
#include "shared/protocol/protocol.h"
#include <stdint.h>

struct job_options {
    uint32_t max_retries;
    usec_t timeout; /* per attempt; 0 = none */
    usec_t backoff_min, backoff_max;
    uint8_t priority;
};

#define JOB_OPTIONS_DEFAULT                                                                        \
    {                                                                                              \
        .max_retries = PROTOCOL_DEFAULT_RETRIES, .timeout = PROTOCOL_DEFAULT_USEC,                 \
        .backoff_min = PROTOCOL_DEFAULT_USEC, .backoff_max = PROTOCOL_DEFAULT_USEC,                \
        .priority = PROTOCOL_DEFAULT_PRIORITY,                                                     \
    }

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
