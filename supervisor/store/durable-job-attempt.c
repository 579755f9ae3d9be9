/* SPDX-License-Identifier: MIT */

/* Keeps in memory that outlives the supervisor that an attempt has ended, until it is written. */

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "supervisor/store/durable-job-private.h"

void durable_forget_attempt(struct durable_job *durable)
{
    if (durable->kept)
        ended_attempts_remove(&durable->jobs->attempts, TAKE_PTR(durable->kept));
}

/* Until the new entry is complete, the former one stays: a crash between them would lose both. */
void durable_job_keep_attempt(struct job *job, bool counts)
{
    struct durable_job *durable = durable_of(job);
    struct ended_attempts *attempts = &durable->jobs->attempts;
    const uint32_t n_failed = job->n_failed + counts;
    struct kept_attempt *entry =
        ended_attempts_add(attempts, durable->row.number, job->attempt, n_failed);

    FAULT_POINT("durable.attempt-kept");
    durable_forget_attempt(durable);
    durable->kept =
        entry ? entry : ended_attempts_add(attempts, durable->row.number, job->attempt, n_failed);
}

/* Takes what is kept of the attempts before `before`. Returns the last one; NULL = the row knows
 * all of them. */
static const struct kept_attempt *take_ends(struct job *job, const struct job_row *row,
                                            uint32_t before)
{
    struct durable_job *durable = durable_of(job);
    struct kept_attempt *mine = durable->kept;
    struct kept_attempt *last =
        ended_attempts_join(&durable->jobs->attempts, row->number, mine, before);

    durable->kept = last;
    if (last && last != mine && last->attempt <= row->attempt && last->n_failed <= row->n_failed)
        durable_forget_attempt(durable);
    return durable->kept;
}

void durable_job_join_ends(struct job *job, const struct job_row *row)
{
    (void)take_ends(job, row, job->attempt);
}

uint32_t durable_job_missed_ends(struct job *job, const struct job_row *row)
{
    const struct kept_attempt *last = take_ends(job, row, UINT32_MAX);

    if (last && last->attempt > job->attempt)
        job->attempt = last->attempt;
    return last && last->n_failed > row->n_failed ? last->n_failed - row->n_failed : 0;
}
