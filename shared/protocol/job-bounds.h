/* SPDX-License-Identifier: MIT */
#pragma once

/* The bounds of what the submitter of a job, or its group's file, may ask for. */

#include "shared/base/clock.h"

#define JOB_RETRIES_MAX 1000000u
#define JOB_BACKOFF_MAX (24 * 3600 * USEC_PER_SEC)
/* A start may be delayed by so much. */
#define JOB_DELAY_MAX (366 * 24 * 3600 * USEC_PER_SEC)
