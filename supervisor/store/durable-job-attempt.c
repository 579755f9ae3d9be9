/* SPDX-License-Identifier: MIT */

/* Keeps in memory that outlives the supervisor that an attempt has ended, until it is written. */

#include "shared/base/cleanup.h"
#include "supervisor/store/durable-job-private.h"

void durable_forget_attempt(struct durable_job *durable)
{
    if (durable->kept)
        ended_attempts_remove(&durable->jobs->attempts, TAKE_PTR(durable->kept));
}

/* How many attempts have failed is known when the row has been read. */
#define N_FAILED_UNKNOWN UINT32_MAX

void durable_job_keep_attempt(struct job *job)
{
    struct durable_job *durable = durable_of(job);
    const uint32_t n_failed = durable_job_is_unread(job) ? N_FAILED_UNKNOWN : job->n_failed;

    durable_forget_attempt(durable);
    durable->kept =
        ended_attempts_add(&durable->jobs->attempts, durable->row.number, job->attempt, n_failed);
}

uint32_t durable_job_missed_ends(struct job *job, const struct job_row *row, bool in_hand)
{
    struct durable_job *durable = durable_of(job);
    struct ended_attempts *attempts = &durable->jobs->attempts;
    uint32_t n_missed = 0;
    struct kept_attempt *entry;

    while ((entry = ended_attempts_take(attempts, row->number))) {
        const bool written = entry->n_failed < row->n_failed;

        if (!in_hand && entry->attempt > job->attempt)
            job->attempt = entry->attempt;
        if (!written && !(in_hand && entry->attempt >= job->attempt))
            n_missed++;
        ended_attempts_remove(attempts, entry);
    }
    if (n_missed > 0 && !durable->kept)
        durable->kept = ended_attempts_add(
            attempts, row->number, in_hand ? job->attempt - 1 : job->attempt, row->n_failed);
    return n_missed;
}
