/* SPDX-License-Identifier: MIT */
#include "supervisor/store/job-to-row.h"

#include <string.h>

static void deadline_to_row(struct job_row *row, const struct job *job)
{
    if (!job->timers || !timer_armed(&job->timers->deadline))
        return;
    row->time_left = usec_sub(timer_at(&job->timers->deadline), clock_now());
    row->deadline = usec_add(clock_steady(), row->time_left);
}

void job_to_row(struct job_row *row, const struct job *job, const char *group)
{
    row->group = group;
    row->group_size = (uint32_t)strlen(group);
    row->key = job->key;
    row->key_size = job->key_size;
    row->name = job->name;
    row->name_size = job->name ? (uint32_t)strlen(job->name) : 0;
    row->priority = job->priority;
    row->asked = job_asked(job);
    row->max_retries = job->max_retries;
    row->submitter_uid = job->submitter_uid;
    row->keep_result = job->keep_result;
    row->moved = job->moved;
    row->created_at = job->created_at;
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

void job_cancel_from_row(struct job *job, const struct job_row *row)
{
    job->cause = row->cancel;
    job->canceller = row->canceller;
}

void job_progress_to_row(struct job_row *row, const struct job *job)
{
    row->state = row_state(job);
    row->cancel = job_cancel_requested(job) ? job->cause : PROTOCOL_CAUSE_NONE;
    row->canceller = job_cancel_requested(job) ? job->canceller : JOB_ROW_NOBODY;
    row->attempt = job->attempt;
    row->n_failed = job->n_failed;
    row->failed_by = job->failed_by;
    row->started_at = job->started_at;
    if (row->state == JOB_ROW_DELAYED || row->state == JOB_ROW_BACKOFF) {
        row->due = job->timers->alarm.date;
        row->delay = job->timers->alarm.delay;
    } else {
        row->due = row->delay = 0;
    }
}

void job_result_to_row(struct ended_row *row, const struct job *job, enum job_state end)
{
    const bool has_result = end == JOB_SUCCEEDED || end == JOB_REJECTED;

    row->reason = job->reason;
    row->reason_size = job->reason ? (uint32_t)strlen(job->reason) : 0;
    row->state = (uint8_t)end;
    row->cause = job->cause;
    row->moved = job->moved;
    row->priority = job->priority;
    row->code = job->code;
    row->attempt = job->attempt;
    row->n_failed = job->n_failed;
    row->max_retries = job->max_retries;
    row->submitter_uid = job->submitter_uid;
    row->created_at = job->created_at;
    row->started_at = job->started_at;
    row->ended_at = job->ended_at;
    row->result = has_result ? payload_data(&job->result) : "";
    row->result_fd = has_result ? job->result.fd : -1;
    row->result_size = has_result ? job->result.size : 0;
}
