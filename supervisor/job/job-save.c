/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-save.h"

#include <errno.h>
#include <stdlib.h>

/* Fields of earlier versions, which the job's other row has. */
#define N_UNUSED 3u

static void put_attempts(struct saved_writer *row, const struct job *job)
{
    const size_t list = saved_begin(row);

    for (unsigned i = 0; i < job->n_attempts; i++) {
        const struct job_attempt *attempt = &job->attempts[i];
        const size_t fields = saved_begin(row);

        saved_put_number(row, attempt->number);
        saved_put_text(row, attempt->worker);
        saved_put_number(row, attempt->at);
        saved_put_text(row, attempt->cause);
        saved_put_text(row, attempt->detail);
        saved_end(row, fields);
    }
    saved_end(row, list);
}

/* Returns whether the attempt is intact. */
static bool get_attempt(struct saved_reader *row, struct job_attempt *attempt)
{
    attempt->number = (uint32_t)saved_get_number(row);
    saved_get_text(row, attempt->worker, sizeof(attempt->worker));
    attempt->at = saved_get_number(row);
    saved_get_text(row, attempt->cause, sizeof(attempt->cause));
    saved_get_text(row, attempt->detail, sizeof(attempt->detail));
    return !row->damaged;
}

/* Attempts that have failed since come behind them. Best effort, as job_note_attempt(). */
static void get_attempts(struct saved_reader *row, struct job *job)
{
    struct saved_reader list = saved_get_fields(row);
    struct job_attempt *attempts, *later = job->attempts;
    uint8_t n = 0;

    if (!saved_has_more(&list) || !(attempts = calloc(JOB_ATTEMPTS_KEPT, sizeof(*attempts))))
        return;
    while (saved_has_more(&list) && n + (later ? job->n_attempts : 0) < JOB_ATTEMPTS_KEPT) {
        struct saved_reader fields = saved_get_fields(&list);

        if (!get_attempt(&fields, &attempts[n++]))
            row->damaged = true;
    }
    for (unsigned i = 0; later && i < job->n_attempts; i++)
        attempts[n++] = later[i];
    free(later);
    job->attempts = attempts;
    job->n_attempts = n;
    job->failed_by = attempt_cause_from_string(attempts[n - 1].cause);
}

bool job_is_plain(const struct job *job)
{
    return job->state != JOB_RUNNING && job->n_attempts == 0 && job->n_unbegun == 0 &&
           !job->put_off;
}

void job_put(struct saved_writer *row, const struct job *job)
{
    saved_put_number(row, job->put_off);
    for (unsigned i = 0; i < N_UNUSED; i++)
        saved_put_number(row, 0);
    saved_put_number(row, job->n_unbegun);
    saved_put_number(row, job->crashed);
    saved_put_number(row, job->crash);
    saved_put_number(row, job->state_sequence);
    put_attempts(row, job);
}

int job_save(const struct job *job, struct saver *saver)
{
    struct saved_writer row = {0};

    if (job_is_plain(job))
        return 0;
    saved_put_number(&row, job->handle);
    job_put(&row, job);
    saved_put_number(&row, job->cause);
    saved_put_number(&row, job->canceller);
    return saved_add(saver, JOB_ROW, &row, NULL);
}

int job_get(struct saved_reader *row, struct job *job)
{
    job->put_off = saved_get_below(row, 1);
    for (unsigned i = 0; i < N_UNUSED; i++)
        (void)saved_get_number(row);
    job->n_unbegun = (uint8_t)saved_get_below(row, UINT8_MAX);
    job->crashed = saved_get_below(row, 1);
    job->crash = (enum death_cause)saved_get_below(row, _DEATH_N_CAUSES - 1);
    job->state_sequence = (uint32_t)saved_get_number(row);
    get_attempts(row, job);
    return row->damaged ? -EBADMSG : 0;
}

int job_restore_row(const struct job_table *table, struct saved_reader *row)
{
    struct job *job = job_by_handle(table, saved_get_number(row));
    int r;

    if (row->damaged || !job)
        return row->damaged ? -EBADMSG : 0;
    r = job_get(row, job);
    if (r < 0 || !job->restored || job->record)
        return r; /* its other row says why it is to be cancelled */
    job->cause = (enum protocol_cause)saved_get_below(row, PROTOCOL_CAUSE_DEADLINE);
    job->canceller = (uid_t)saved_get_number(row);
    return row->damaged ? -EBADMSG : 0;
}
