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

/* How many jobs go to the backlog in a turn. */
#define LATER_PER_TURN 256

struct later_job {
    struct index_entry by_number;
    struct heap_node by_time;
    bool has_date;
    uint8_t priority;
};

static struct later_times *times_of(struct cell *cell, bool has_date)
{
    return has_date ? &cell->later.dates : &cell->later.delays;
}

static usec_t now_of(const struct cell *cell, bool has_date)
{
    return has_date ? loop_realtime(cell->context->loop) : clock_steady();
}

static struct later_job *first_of(const struct later_times *times)
{
    struct heap_node *node = heap_first(&times->heap);

    return node ? list_entry(node, struct later_job, by_time) : NULL;
}

static struct later_job *find(const struct cell *cell, int64_t number)
{
    struct index_entry *entry = index_find(&cell->later.by_number, (uint64_t)number);

    return entry ? list_entry(entry, struct later_job, by_number) : NULL;
}

/* Sets the alarm for the first job. */
static void set_alarm(struct cell *cell, bool has_date)
{
    struct later_times *times = times_of(cell, has_date);
    const struct later_job *first = first_of(times);
    usec_t at;

    alarm_stop(&times->alarm);
    if (!first)
        return;
    at = usec_sub(first->by_time.key, READ_BEFORE);
    if (has_date)
        alarm_set_at(&times->alarm, at);
    else
        alarm_set_after(&times->alarm, usec_sub(at, clock_steady()));
}

static void later_job_free(struct cell *cell, struct later_job *job)
{
    struct later_times *times = times_of(cell, job->has_date);

    heap_remove(&times->heap, &job->by_time);
    index_remove(&cell->later.by_number, &job->by_number);
    job_count(&cell->counts, JOBS_BACKOFF, -1);
    if (cell->later.by_number.n_entries == 0)
        index_deinit(&cell->later.by_number);
    free(job);
}

static void read_due(struct cell *cell, bool has_date)
{
    struct later_times *times = times_of(cell, has_date);
    const usec_t until = usec_add(now_of(cell, has_date), READ_BEFORE);
    struct later_job *job;

    for (unsigned n = 0; n < LATER_PER_TURN && (job = first_of(times)); n++) {
        if (job->by_time.key > until)
            break;
        if (cell_backlog_append(cell, job->priority, (int64_t)job->by_number.key) < 0) {
            alarm_set_after(&times->alarm, LATER_RETRY);
            return;
        }
        later_job_free(cell, job);
    }
    set_alarm(cell, has_date);
}

static void on_date(struct alarm *alarm)
{
    read_due(list_entry(alarm, struct cell, later.dates.alarm), true);
}

static void on_delay(struct alarm *alarm)
{
    read_due(list_entry(alarm, struct cell, later.delays.alarm), false);
}

void cell_later_init(struct cell *cell)
{
    struct cell_later *later = &cell->later;

    *later = (struct cell_later){.by_number = INDEX_NULL};
    alarm_init(&later->dates.alarm, cell->context->alarms, on_date);
    alarm_init(&later->delays.alarm, cell->context->alarms, on_delay);
    list_init(&later->in_review);
}

/* Returns false if the job begins soon, or without memory. */
static bool add(struct cell *cell, int64_t number, uint8_t priority, usec_t due, usec_t delay)
{
    const bool has_date = delay == 0;
    struct later_times *times = times_of(cell, has_date);
    struct later_job *job;

    if (usec_sub(due, now_of(cell, has_date)) <= LATER_MIN || !(job = calloc(1, sizeof(*job))))
        return false;
    heap_set(&times->heap, &job->by_time, due);
    job->has_date = has_date;
    job->priority = priority;
    index_add(&cell->later.by_number, &job->by_number, (uint64_t)number);
    job_count(&cell->counts, JOBS_BACKOFF, 1);
    if (first_of(times) == job)
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
    struct list *node;

    while ((node = list_first(&cell->later.in_review))) {
        struct job *job = job_of(node);
        const struct alarm *alarm = &job->timers->alarm;

        list_unlink(node);
        if (cell_is_needed(job) || job_is_unique(job) || job_waits_for_others(job) ||
            !add(cell, durable_job_number(job), job->priority, alarm->date, alarm->delay)) {
            list_push_back(&cell->backoff, node);
            continue;
        }
        alarm_stop(&job->timers->alarm);
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
        later_job_free(cell, later);
    if (row->state != JOB_ROW_DELAYED || row->due <= now_of(cell, row->delay == 0))
        return false;
    cell_resume_wait(cell, job, JOB_DELAYED, row);
    return true;
}

static void leave(struct cell *cell, bool has_date)
{
    struct later_job *job;

    while ((job = first_of(times_of(cell, has_date)))) {
        later_job_free(cell, job);
        job_count(&cell->counts, JOBS_LIVE, -1);
        job_count(&cell->counts, JOBS_ON_DISK, -1);
    }
    set_alarm(cell, has_date);
}

void cell_later_leave(struct cell *cell)
{
    leave(cell, true);
    leave(cell, false);
}
