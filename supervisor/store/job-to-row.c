/* SPDX-License-Identifier: MIT */
#include "supervisor/store/job-to-row.h"
#include "supervisor/job/checkpoint.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/succession/record.h"

#include <string.h>

static uint32_t size_of(const char *text)
{
    return text ? (uint32_t)strlen(text) : 0;
}

static void deadline_to_row(struct job_row *row, const struct job *job)
{
    if (!job_has_deadline(job))
        return;
    row->time_left = usec_sub(timer_at(&job->deadline->timer), clock_now());
    row->deadline = usec_add(clock_steady(), row->time_left);
}

static void ties_to_row(struct job_row *row, const struct job_ties *ties)
{
    const struct job_fate *fate = ties->fate;

    row->ties = ties->text;
    row->ties_size = size_of(ties->text);
    row->member_of = ties->batch ? ties->batch->key : 0;
    if (!fate || !fate->is_batch)
        return;
    row->batch = fate->tally.open ? BATCH_OPEN : BATCH_CLOSED;
    row->n_members_succeeded = fate->tally.succeeded;
    row->n_members_failed = fate->tally.failed;
}

void job_to_row(struct job_row *row, const struct job *job, const char *group)
{
    row->facts = job->facts;
    row->group = group;
    row->group_size = size_of(group);
    row->key = job->key;
    row->key_size = job->key_size;
    row->name = job->name;
    row->name_size = size_of(job->name);
    row->asked = job_asked(job);
    if (job->rare) {
        row->unique_high = job->rare->unique.high;
        row->unique_low = job->rare->unique.low;
        row->debounced = job->rare->debounced;
        if (job->rare->ties)
            ties_to_row(row, job->rare->ties);
        row->tags = job->rare->tags;
        row->tags_size = size_of(job->rare->tags);
        row->traceparent = job->rare->traceparent;
        row->traceparent_size = size_of(job->rare->traceparent);
    }
    deadline_to_row(row, job);
    row->payload_size = job->payload.size;
}

static enum job_row_state row_state(const struct job *job)
{
    switch (job->state) {
    case JOB_DELAYED:
        return JOB_ROW_DELAYED;
    case JOB_BACKOFF:
        return JOB_ROW_BACKOFF;
    case JOB_RUNNING:
        return job->started ? JOB_ROW_RUNNING : JOB_ROW_WAITING;
    default:
        return JOB_ROW_WAITING;
    }
}

void job_progress_to_row(struct job_row *row, const struct job *job)
{
    const struct checkpoint *checkpoint = job_checkpoint(job);

    row->facts = job->facts;
    row->state = row_state(job);
    row->checkpoint_size = checkpoint ? checkpoint->size : 0;
    if (row->state == JOB_ROW_DELAYED || row->state == JOB_ROW_BACKOFF) {
        row->due = job->pause->alarm.date;
        row->delay = job->pause->alarm.delay;
    } else {
        row->due = row->delay = 0;
    }
}

void job_end_to_row(struct job_row *row, const struct job *job, enum job_state end)
{
    const bool has_result = end == JOB_SUCCEEDED || end == JOB_REJECTED;

    row->facts = job->facts;
    row->state = end;
    row->reason = job->reason;
    row->reason_size = size_of(job->reason);
    row->payload = has_result ? payload_data(&job->result) : "";
    row->payload_fd = has_result ? job->result.fd : -1;
    row->payload_size = has_result ? job->result.size : 0;
}

/* ---- upgrade ---- */

#define ROW saved_job
#define FIELDS(F)                                                                                  \
    F(UPGRADE, row, SUBRECORD(row, JOB_ROW_RECORD))                                                \
    F(UPGRADE, handle, NUMBER(handle))                                                             \
    F(UPGRADE, high, NUMBER(id_high))                                                              \
    F(UPGRADE, low, NUMBER(id_low))                                                                \
    F(UPGRADE, end, BELOW(end, _JOB_N_STATES - 1))                                                 \
    F(UPGRADE, payload_lost, NUMBER(payload_lost))                                                 \
    F(UPGRADE, has_checkpoint, NUMBER(has_checkpoint))                                             \
    F(UPGRADE, checkpoint, TEXT(row.checkpoint))                                                   \
    F(UPGRADE, reason, TEXT(row.reason))                                                           \
    F(UPGRADE, attempts, LIST(attempts, n_attempts, JOB_ATTEMPT_RECORD))
const struct record SAVED_JOB_RECORD = RECORD(SAVED_JOB_ROW, FIELDS);

bool job_lacks_checkpoint_on_disk(const struct job *job)
{
    return job_checkpoint(job) && !(job->record && durable_job_is_stored(job));
}

/* Otherwise there is none, or it is on disk. */
static void checkpoint_to_saved(struct saved_job *saved, const struct job *job)
{
    const struct checkpoint *checkpoint = job_checkpoint(job);

    saved->has_checkpoint = job_lacks_checkpoint_on_disk(job);
    saved->row.checkpoint = saved->has_checkpoint ? checkpoint->bytes : NULL;
    saved->row.checkpoint_size = saved->has_checkpoint ? checkpoint->size : 0;
}

int saved_job_fill(struct saved_job *saved, const struct job *job, const char *group)
{
    int r = 0;

    *saved = (struct saved_job){
        .row = JOB_ROW_NULL,
        .handle = job->handle,
        .id_high = job->id_high,
        .id_low = job->id_low,
        .end = job_ended(job) ? (uint8_t)job->state : 0,
        .payload_lost = job->payload_lost,
        .n_attempts = job->n_attempts,
    };
    if (job_own_ties(job) && !job->record)
        r = ties_write(job_own_ties(job));
    job_to_row(&saved->row, job, group);
    job_progress_to_row(&saved->row, job);
    checkpoint_to_saved(saved, job);
    saved->row.reason = job->reason;
    saved->row.reason_size = size_of(job->reason);
    if (job->n_attempts > 0)
        memcpy(saved->attempts, job->rare->attempts, job->n_attempts * sizeof(saved->attempts[0]));
    return r;
}
