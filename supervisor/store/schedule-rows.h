/* SPDX-License-Identifier: MIT */
#pragma once

/* A row holds the decisions of a schedule. The same struct is kept in shared memory, which outlives
 * a crash of the supervisor. */

#include "supervisor/store/setting-rows.h"
#include <stddef.h>
#include <stdint.h>

#define SCHEDULE_LAST_MAX   10 /* decided slots that are kept */
#define SCHEDULE_SKIPS_MAX  8  /* slots to come that are to be skipped */
#define SCHEDULE_N_OUTCOMES 5

/* Times are seconds since 1970; 0 = none. */
struct schedule_row {
    int64_t reached; /* the last slot that is decided, waits, or is being fired */
    int64_t seen;    /* the last slot that came while slots could be fired */
    int64_t waiting; /* the slot that waits for the end of a job */
    int64_t firing;  /* the slot whose job the group has got, and not accepted yet */
    int64_t paused_at, resumed_at;
    int64_t ended_at;  /* when a job ended last */
    uint32_t failures; /* in a row */
    uint8_t pause;     /* enum plan_pause */
    uint64_t counts[SCHEDULE_N_OUTCOMES];
    int64_t last[SCHEDULE_LAST_MAX]; /* newest first; see plan_slot() */
    int64_t skips[SCHEDULE_SKIPS_MAX];
};

extern const struct record SCHEDULE_ROW_RECORD;
extern const struct setting_rows SCHEDULE_ROWS;
