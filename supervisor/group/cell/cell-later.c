/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-later.h"

#include "supervisor/group/cell/cell-backlog.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/store/durable-job.h"
#include <stdlib.h>

/* A job that begins sooner stays in memory. */
#define LATER_MIN (10 * USEC_PER_SEC)
/* How long before its time a job is read. */
#define READ_BEFORE USEC_PER_SEC
/* Pause when memory is short. */
#define LATER_RETRY USEC_PER_SEC

/* How many jobs go to the backlog or to the disk in a turn. */
#define LATER_PER_TURN 256

struct later_job {
    struct heap_node by_time; /* first: for job_table_discard() */
    struct index_entry by_number;
    bool has_date;
    uint8_t priority;
};

static struct heap *heap_of(struct later_jobs *jobs, bool has_date)
{
    return has_date ? &jobs->dates : &jobs->delays;
}

static struct alarm *alarm_of(struct cell *cell, bool has_date)
{
    return has_date ? &cell->later.date : &cell->later.delay;
}

static usec_t now_of(const struct cell *cell, bool has_date)
{
    return has_date ? loop_realtime(cell->context->loop) : clock_steady();
}

static struct later_job *first_of(struct later_jobs *jobs, bool has_date)
{
    struct heap_node *node = heap_first(heap_of(jobs, has_date));

    return node ? list_entry(node, struct later_job, by_time) : NULL;
}

static struct later_job *find(const struct cell *cell, int64_t number)
{
    return index_find_entry(&cell->later.jobs.by_number, (uint64_t)number, struct later_job,
                            by_number);
}

/* Sets the alarm for the first job. */
static void set_alarm(struct cell *cell, bool has_date)
{
    const struct later_job *first = first_of(&cell->later.jobs, has_date);
    struct alarm *alarm = alarm_of(cell, has_date);
    usec_t at;

    alarm_stop(alarm);
    if (!first)
        return;
    at = usec_sub(first->by_time.key, READ_BEFORE);
    if (has_date)
        alarm_set_at(alarm, at);
    else
        alarm_set_after(alarm, usec_sub(at, clock_steady()));
}

static void later_job_free(struct later_jobs *jobs, struct later_job *job)
{
    heap_remove(heap_of(jobs, job->has_date), &job->by_time);
    index_remove(&jobs->by_number, &job->by_number);
    if (jobs->by_number.n_entries == 0)
        index_deinit(&jobs->by_number);
    free(job);
}

static void leave_later(struct cell *cell, struct later_job *job)
{
    later_job_free(&cell->later.jobs, job);
    job_count(&cell->counts, JOBS_BACKOFF, -1);
}

static void read_due(struct cell *cell, bool has_date)
{
    const usec_t until = usec_add(now_of(cell, has_date), READ_BEFORE);
    struct later_job *job;

    for (unsigned n = 0; n < LATER_PER_TURN && (job = first_of(&cell->later.jobs, has_date)); n++) {
        if (job->by_time.key > until)
            break;
        if (cell_backlog_append(cell, job->priority, (int64_t)job->by_number.key) < 0) {
            alarm_set_after(alarm_of(cell, has_date), LATER_RETRY);
            return;
        }
        leave_later(cell, job);
    }
    set_alarm(cell, has_date);
}

static void on_date(struct alarm *alarm)
{
    read_due(list_entry(alarm, struct cell, later.date), true);
}

static void on_delay(struct alarm *alarm)
{
    read_due(list_entry(alarm, struct cell, later.delay), false);
}

void cell_later_init(struct cell *cell)
{
    struct cell_later *later = &cell->later;

    *later = (struct cell_later){0};
    alarm_init(&later->date, cell->context->alarms, on_date);
    alarm_init(&later->delay, cell->context->alarms, on_delay);
    list_init(&later->in_review);
}

/* Returns false if the job begins soon, or without memory. */
static bool add(struct cell *cell, int64_t number, uint8_t priority, usec_t due, usec_t delay)
{
    const bool has_date = delay == 0;
    struct later_jobs *jobs = &cell->later.jobs;
    struct later_job *job;

    if (usec_sub(due, now_of(cell, has_date)) <= LATER_MIN || !(job = calloc(1, sizeof(*job))))
        return false;
    heap_set(heap_of(jobs, has_date), &job->by_time, due);
    job->has_date = has_date;
    job->priority = priority;
    index_add(&jobs->by_number, &job->by_number, (uint64_t)number);
    job_count(&cell->counts, JOBS_BACKOFF, 1);
    if (first_of(jobs, has_date) == job)
        set_alarm(cell, has_date);
    return true;
}

/* ---- from memory to disk ---- */

void cell_later_review(struct job *job)
{
    list_unlink(&job->link);
    list_push_back(&job->cell->later.in_review, &job->link);
    cell_wake(job->cell);
}

void cell_later_turn(struct cell *cell)
{
    unsigned n = 0;

    list_until_empty (job, &cell->later.in_review, struct job, link) {
        const struct alarm *alarm = &job->pause->alarm;

        if (n++ == LATER_PER_TURN) {
            cell_wake(cell);
            return;
        }
        list_unlink(&job->link);
        if (cell_is_needed(job) || job_is_unique(job) || job_waits_for_others(job) ||
            !add(cell, durable_job_number(job), job->priority, alarm->date, alarm->delay)) {
            list_push_back(&cell->backoff, &job->link);
            continue;
        }
        alarm_stop(&job->pause->alarm);
        job_count(&cell->counts, JOBS_BACKOFF, -1);
        cell_drop_from_memory(cell, job);
    }
}

/* ---- from disk to memory ---- */

/* Whether the whole delay ends before the date, since clock_steady() began with a wrong clock. */
static bool is_behind(const struct job_row *row)
{
    return row->delay > 0 && usec_sub(row->due, clock_steady()) > row->delay;
}

bool cell_later_add_row(struct cell *cell, const struct job_row *row)
{
    if (row->unique_low != 0 || is_behind(row) ||
        !add(cell, row->number, row->priority, row->due, row->delay))
        return false;
    cell_count_live(cell);
    job_count(&cell->counts, JOBS_ON_DISK, 1);
    return true;
}

bool cell_later_has(const struct cell *cell, int64_t number)
{
    return find(cell, number);
}

bool cell_later_resume(struct cell *cell, struct job *job, const struct job_row *row)
{
    struct later_job *later = find(cell, row->number);

    if (later)
        leave_later(cell, later);
    if (row->state != JOB_ROW_DELAYED || row->due <= now_of(cell, row->delay == 0))
        return false;
    cell_resume_wait(cell, job, JOB_DELAYED, row);
    return true;
}

void cell_later_leave(struct cell *cell)
{
    struct cell_later *later = &cell->later;
    const int64_t n = later->jobs.by_number.n_entries;

    alarm_stop(&later->date);
    alarm_stop(&later->delay);
    if (n == 0)
        return;
    index_clear(&later->jobs.by_number);
    job_table_discard(cell->context->jobs, &later->jobs.dates);
    job_table_discard(cell->context->jobs, &later->jobs.delays);
    job_count(&cell->counts, JOBS_BACKOFF, -n);
    job_count(&cell->counts, JOBS_LIVE, -n);
    job_count(&cell->counts, JOBS_ON_DISK, -n);
}
