/* SPDX-License-Identifier: MIT */
/* Changes of jobs that wait: another group, another priority, another time. */

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-stream.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/loop/alarm.h"

static void write_change(struct job *job, bool of_place)
{
    if (!job->record)
        return;
    if (of_place)
        durable_job_move(job, job->group->name);
    else
        durable_job_update(job, false);
}

/* ---- another group ---- */

void cell_take_options(struct job *job)
{
    const struct job_options asked = job_asked(job);
    const uint32_t max_retries = job->max_retries;

    job_set_options(job, &asked, job->cell->config);
    job->max_retries = max_retries;
}

static void count_out(struct cell *cell, struct job *job)
{
    cell_progress_moved(cell);
    job_count(&cell->counts, JOBS_BYTES, -(int64_t)job_bytes(job));
    job_count(&cell->counts, JOBS_LIVE, -1);
    submitter_leave(job);
}

static void count_in(struct cell *cell, struct job *job, bool is_bounded)
{
    job_count(&cell->counts, JOBS_BYTES, (int64_t)job_bytes(job));
    cell_count_live(cell);
    if (is_bounded)
        submitter_adopt(&cell->submitters, job);
}

void cell_transfer(struct job *job, struct cell *to)
{
    const bool is_bounded = job->submitter;

    count_out(job->cell, job);
    job_stream_move(job, &to->group->streams);
    job->group = to->group;
    job->cell = to;
    cell_take_options(job);
    count_in(to, job, is_bounded);
}

/* The alarm, and the wait for other jobs, continue: they find the cell through the job. */
static void move_wait(struct job *job, struct cell *to)
{
    const bool is_pending = job->state == JOB_PENDING;
    const enum job_count count = is_pending ? JOBS_PENDING : JOBS_BACKOFF;

    list_unlink(&job->link);
    job_count(&job->cell->counts, count, -1);
    cell_transfer(job, to);
    list_push_back(is_pending ? &to->pending : &to->backoff, &job->link);
    job_count(&to->counts, count, 1);
}

void cell_move_job(struct job *job, struct cell *to)
{
    struct cell *cell = job->cell;

    job_event(job, "job.moved", NULL, "continues in %s: moved on request", to->name);
    if (job->state == JOB_QUEUED) {
        cell_take_out(cell, job);
        cell_transfer(job, to);
        cell_enqueue(to, job, false);
    } else {
        move_wait(job, to);
    }
    write_change(job, true);
    job_tell_waiters(to->context->jobs, job);
    cell_wake(cell);
    cell_note_gone(cell);
}

/* ---- another place, another time ---- */

int cell_set_priority(struct job *job, uint8_t priority)
{
    const bool is_queued = job->state == JOB_QUEUED;
    struct cell *cell = job->cell;

    if (job->priority == priority && job_asked(job).priority == priority)
        return 0;
    if (is_queued)
        cell_take_out(cell, job);
    job_set_priority(job, priority);
    if (is_queued)
        cell_enqueue(cell, job, false);
    write_change(job, true);
    job_tell_waiters(cell->context->jobs, job);
    return 0;
}

/* A job that waits on disk comes into memory, and stays there. */
static int put_off(struct cell *cell, struct job *job, usec_t delay)
{
    int r = job_make_pause(job);

    if (r < 0)
        return r;
    if (job->record && cell->counts.n[JOBS_BYTES] > cell->config->queue_memory_max)
        return CELL_E_BUSY;
    cell_take_out(cell, job);
    r = cell_delay(cell, job, delay, 0);
    if (r < 0)
        cell_enqueue(cell, job, false);
    return r;
}

int cell_set_delay(struct job *job, usec_t delay)
{
    struct cell *cell = job->cell;
    int r;

    if (job->state == JOB_QUEUED) {
        r = put_off(cell, job, delay);
    } else {
        alarm_stop(&job->pause->alarm);
        r = cell_set_alarm(cell, job, delay, 0);
        if (r < 0)
            cell_end_wait(job);
    }
    if (r != 0)
        return r;
    write_change(job, false);
    job_tell_waiters(cell->context->jobs, job);
    return 0;
}

int cell_run_now(struct job *job)
{
    if (job->state == JOB_QUEUED)
        return 0;
    if (cell_leaves_after_oom(job->cell, job))
        return cell_set_delay(job, 1); /* then it may leave, or end */
    alarm_stop(&job->pause->alarm);
    cell_end_wait(job);
    write_change(job, false);
    return 0;
}
