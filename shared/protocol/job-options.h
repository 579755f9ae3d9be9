/* SPDX-License-Identifier: MIT */
#pragma once

/* Options that the submitter of a job may choose and a requeue keeps. PROTOCOL_DEFAULT_RETRIES,
 * PROTOCOL_DEFAULT_USEC and PROTOCOL_DEFAULT_PRIORITY mean the group's own value. */

#include "shared/base/clock.h"
#include "shared/protocol/protocol.h"
#include <stdint.h>

#define JOB_RETRIES_MAX 1000000u
#define JOB_BACKOFF_MAX (UINT64_C(24) * 3600 * USEC_PER_SEC)
#define JOB_COST_MAX    255u
/* The longest delay of a start. */
#define JOB_DELAY_MAX (UINT64_C(366) * 24 * 3600 * USEC_PER_SEC)

struct job_options {
    uint32_t max_retries;
    usec_t timeout; /* per attempt; 0 = none */
    usec_t backoff_min, backoff_max;
    uint8_t priority;
    uint8_t cost; /* units of limits; 0 = 1 */
};

#define JOB_OPTIONS_DEFAULT                                                                        \
    {                                                                                              \
        .max_retries = PROTOCOL_DEFAULT_RETRIES, .timeout = PROTOCOL_DEFAULT_USEC,                 \
        .backoff_min = PROTOCOL_DEFAULT_USEC, .backoff_max = PROTOCOL_DEFAULT_USEC,                \
        .priority = PROTOCOL_DEFAULT_PRIORITY,                                                     \
    }
