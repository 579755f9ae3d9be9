/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/job-stats-save.h"

#include "shared/base/cleanup.h"

/* In the order of the fields. */
static const enum job_count TOTALS[] = {
    JOBS_SUCCEEDED, JOBS_REJECTED, JOBS_CANCELLED, JOBS_DEAD,
    JOBS_RETRIES,   JOBS_REFUSED,  JOBS_ACCEPTED,
};

void job_stats_put(struct saved_writer *row, const struct job_counts *counts,
                   const struct job_history *history)
{
    const size_t totals = saved_begin(row);

    for (size_t i = 0; i < ELEMENTS(TOTALS); i++)
        saved_put_number(row, counts->n[TOTALS[i]]);
    saved_end(row, totals);
    latency_put(row, &history->latency);
    latency_put(row, &history->work);
    outcomes_put(row, &history->outcomes);
}

void job_stats_get(struct saved_reader *row, struct job_counts *counts, struct job_history *history)
{
    struct saved_reader totals = saved_get_fields(row);

    for (size_t i = 0; i < ELEMENTS(TOTALS); i++)
        counts->n[TOTALS[i]] += saved_get_number(&totals);
    latency_get(row, &history->latency);
    latency_get(row, &history->work);
    outcomes_get(row, &history->outcomes);
}
