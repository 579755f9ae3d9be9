/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/job-stats.h"

#include "supervisor/succession/record.h"

#define ROW              job_counts
#define COUNTS_FIELDS(F) F(UPGRADE, totals, FIRST(n, JOBS_LIVE))
static const struct field COUNTS[] = {COUNTS_FIELDS(FIELD)};
const struct record JOB_COUNTS_RECORD = RECORD("job-counts", COUNTS);
#undef ROW

#define ROW job_history
#define HISTORY_FIELDS(F)                                                                          \
    F(UPGRADE, latency, SUBRECORD(latency, LATENCY_RECORD))                                        \
    F(UPGRADE, work, SUBRECORD(work, LATENCY_RECORD))                                              \
    F(UPGRADE, outcomes, SUBRECORD(outcomes, OUTCOMES_RECORD))
static const struct field HISTORY[] = {HISTORY_FIELDS(FIELD)};
const struct record JOB_HISTORY_RECORD = RECORD("job-history", HISTORY);
