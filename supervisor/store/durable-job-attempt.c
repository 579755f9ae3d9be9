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
void durable_job_keep_attempt(struct job *job)
{
    struct durable_job *durable = durable_of(job);
    struct ended_attempts *attempts = &durable->jobs->attempts;
    const uint32_t n_failed = durable_job_is_unread(job) ? N_FAILED_UNKNOWN : job->n_failed;
    struct kept_attempt *entry =
        ended_attempts_add(attempts, durable->row.number, job->attempt, n_failed);

    FAULT_POINT("durable.attempt-kept");
    durable_forget_attempt(durable);
    durable->kept =
        entry ? entry : ended_attempts_add(attempts, durable->row.number, job->attempt, n_failed);
}

/* The end of the attempt in hand, which `mine` keeps, is not counted: it is about to be. */
static uint32_t count_missed(const struct kept_attempt *last, const struct kept_attempt *mine,
                             uint32_t row_n_failed)
{
    const uint32_t n_failed = !last ? 0 : last == mine ? last->n_failed : last->n_failed + 1;

    return n_failed > row_n_failed ? n_failed - row_n_failed : 0;
}

uint32_t durable_job_missed_ends(struct job *job, const struct job_row *row, bool in_hand)
{
    struct durable_job *durable = durable_of(job);
    struct ended_attempts *attempts = &durable->jobs->attempts;
    struct kept_attempt *mine = durable->kept;
    struct kept_attempt *last = ended_attempts_join(
        attempts, row->number, mine, in_hand ? job->attempt : UINT32_MAX, row->n_failed);
    const uint32_t n_missed = count_missed(last, mine, row->n_failed);

    if (last && !in_hand && last->attempt > job->attempt)
        job->attempt = last->attempt;
    durable->kept = last;
    if (n_missed == 0 && last != mine)
        durable_forget_attempt(durable); /* the row counts it */
    return n_missed;
}
