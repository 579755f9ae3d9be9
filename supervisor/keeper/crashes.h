/* SPDX-License-Identifier: MIT */
#pragma once

/* The supervisor's recent crashes: after how long it is started again, and whether in safe mode. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

/* So many crashes within this time switch to safe mode. */
#define CRASHES_MAX    3
#define CRASHES_WITHIN (30 * USEC_PER_SEC)

/* Valid when zeroed. */
struct crashes {
    usec_t at[CRASHES_MAX]; /* the latest ones, in turns; 0 = none */
    uint32_t n;             /* since the start */
    bool safe_mode;         /* until crashes_forgive() */
    usec_t delay;           /* before the next restart in safe mode */
};

/* Counts one. Returns when to start the supervisor again: now, or later in safe mode. */
usec_t crashes_add(struct crashes *crashes, usec_t now);
/* Ends safe mode. */
void crashes_forgive(struct crashes *crashes);
