/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-backlog.h"

#include "shared/base/cleanup.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/job/queue.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READ_RETRY USEC_PER_SEC
/* Pause while rows that were read at a start are still to be taken, which may be more urgent. */
#define TAKEN_RETRY (10 * USEC_PER_MSEC)

/* How many jobs are read at a time. */
#define CHUNK (CELL_JOBS_IN_MEMORY / 2)

/* Parked jobs that are looked at in one turn. */
#define REVIEWS_PER_TURN 1024

/* A number whose row is being read. It stays in the backlog until its job is in the queue. */
struct reading {
    struct disk_number number;
    struct job *job; /* with a reference: it was in memory; NULL = its row is read */
};

struct cell_backlog {
    struct disk_queue numbers;
    struct disk_queue new_numbers; /* of jobs that came while the group is restored */
    struct list parked;            /* struct job.link */
    struct list in_review;         /* parked jobs that may be dropped from memory */
    uint64_t parked_bytes;         /* payloads of both */
    int64_t last_missing;          /* the highest number read that had no row */
    struct job_load *load;         /* what is being read; NULL = nothing */
    struct cell *cell;
    struct timer retry;             /* nothing is read before */
    struct reading readings[CHUNK]; /* beside load->entries */
};

static void on_retry(struct timer *timer, usec_t now)
{
    cell_wake(list_entry(timer, struct cell_backlog, retry)->cell);
}

static void read_after(struct cell *cell, usec_t pause)
{
    timer_arm(cell_timers(cell), &cell->backlog->retry, usec_add(cell_now(cell), pause));
}

/* Reads again later: memory is short, or none of the jobs that were read could be taken. */
static void read_later(struct cell *cell)
{
    read_after(cell, READ_RETRY);
}

static struct cell_backlog *make_backlog(struct cell *cell)
{
    struct cell_backlog *backlog = cell->backlog;

    if (backlog)
        return backlog;
    backlog = calloc(1, sizeof(*backlog));
    if (!backlog)
        return NULL;
    disk_queue_init(&backlog->numbers);
    disk_queue_init(&backlog->new_numbers);
    list_init(&backlog->parked);
    list_init(&backlog->in_review);
    timer_init(&backlog->retry, on_retry);
    backlog->cell = cell;
    cell->backlog = backlog;
    return backlog;
}

/* ---- parked jobs ---- */

static void park(struct cell *cell, struct job *job)
{
    job->parked = true;
    cell->backlog->parked_bytes += job->payload.size;
    list_push_back(&cell->backlog->in_review, &job->link);
    cell_wake(cell);
}

static void take_out_parked(struct cell *cell, struct job *job)
{
    job->parked = false;
    cell->backlog->parked_bytes -= job->payload.size;
    list_unlink(&job->link);
}

static bool is_being_read(const struct cell_backlog *backlog, int64_t number)
{
    for (size_t i = 0; backlog->load && i < backlog->load->n; i++)
        if (backlog->readings[i].number.number == number)
            return true;
    return false;
}

void cell_backlog_forget(struct cell *cell, struct job *job)
{
    struct cell_backlog *backlog = cell->backlog;
    const struct disk_number number = {durable_job_number(job), job->priority};

    take_out_parked(cell, job);
    if (!group_cell_closed(cell) && !is_being_read(backlog, number.number))
        disk_queue_remove(
            cell_backlog_awaits_restore(job) ? &backlog->new_numbers : &backlog->numbers, &number);
}

bool cell_is_needed(const struct job *job)
{
    return job->references > 1 || job->returned || !list_empty(&job->waiters) ||
           !durable_job_is_stored(job) || job_has_deadline(job) ||
           unique_is_awaited(job->cell->context->jobs, job);
}

void cell_drop_from_memory(struct cell *cell, struct job *job)
{
    job_count(&cell->counts, JOBS_BYTES, -(int64_t)job_bytes(job));
    job_count(&cell->counts, JOBS_ON_DISK, 1);
    submitter_leave_on_disk(job);
    job->cell = NULL;
    job->group = NULL;
    job_unref(cell->context->jobs, job);
}

static void review_parked(struct cell *cell)
{
    unsigned n = 0;

    list_until_empty (job, &cell->backlog->in_review, struct job, link) {
        if (n++ == REVIEWS_PER_TURN) {
            cell_wake(cell);
            return;
        }
        if (!cell_is_needed(job)) {
            take_out_parked(cell, job);
            cell_drop_from_memory(cell, job);
            continue;
        }
        list_unlink(&job->link);
        list_push_back(&cell->backlog->parked, &job->link);
    }
}

/* ---- from memory to disk ---- */

bool cell_backlog_awaits_restore(const struct job *job)
{
    return job->record && group_awaits_restore(job->group) &&
           durable_job_number(job) >= job->group->new_from;
}

static bool add_new(struct cell *cell, struct job *job)
{
    if (!make_backlog(cell) || disk_queue_push_back(&cell->backlog->new_numbers, job->priority,
                                                    durable_job_number(job)) < 0)
        return false;
    park(cell, job);
    return true;
}

bool cell_backlog_add(struct cell *cell, struct job *job, bool first)
{
    struct cell_backlog *backlog = cell->backlog;
    unsigned next;
    int r;

    if (cell_backlog_awaits_restore(job))
        return add_new(cell, job);
    if (!backlog)
        return false;
    next = disk_queue_priority(&backlog->numbers);
    if (job->priority < next || (first && job->priority == next))
        return false;
    r = first ? disk_queue_push_front(&backlog->numbers, job->priority, durable_job_number(job))
              : disk_queue_push_back(&backlog->numbers, job->priority, durable_job_number(job));
    if (r < 0)
        return false;
    park(cell, job);
    return true;
}

int cell_backlog_append(struct cell *cell, unsigned priority, int64_t number)
{
    int r = make_backlog(cell) ? disk_queue_push_back(&cell->backlog->numbers, priority, number)
                               : -ENOMEM;

    if (r == 0)
        cell_wake(cell);
    return r;
}

int cell_backlog_add_number(struct cell *cell, unsigned priority, int64_t number)
{
    int r = cell_backlog_append(cell, priority, number);

    if (r < 0)
        return r;
    cell_count_live(cell);
    job_count(&cell->counts, JOBS_ON_DISK, 1);
    return 0;
}

void cell_backlog_end_restore(struct cell *cell)
{
    if (!cell->backlog)
        return;
    disk_queue_append(&cell->backlog->numbers, &cell->backlog->new_numbers);
    cell_wake(cell);
}

/* Returns the payload bytes of the jobs in memory that are not parked. */
static uint64_t bytes_in_use(const struct cell *cell)
{
    return cell->counts.n[JOBS_BYTES] - (cell->backlog ? cell->backlog->parked_bytes : 0);
}

/* Returns the payload bytes below which more jobs are read, and which are read at a time. */
static uint64_t few_bytes(const struct cell *cell)
{
    return cell->config->queue_memory_max / 4;
}

/* Whether memory holds too many payload bytes, and still holds enough without this job. Otherwise
 * the job would be read again immediately. */
static bool has_spare_bytes(const struct cell *cell, const struct job *job)
{
    const uint64_t bytes = bytes_in_use(cell);

    return bytes > cell->config->queue_memory_max / 2 &&
           bytes - job->payload.size > few_bytes(cell);
}

/* Whether the last job of the queue belongs in the backlog: the queue is too long, or a more
 * urgent job came while this one was read. */
static bool is_last_too_many(const struct cell *cell, const struct job *last)
{
    const struct cell_backlog *backlog = cell->backlog;

    return cell->queue.n_jobs > CELL_JOBS_IN_MEMORY ||
           (cell->queue.n_jobs > 1 && has_spare_bytes(cell, last)) ||
           (backlog && disk_queue_priority(&backlog->numbers) < last->priority);
}

void cell_backlog_shorten_queue(struct cell *cell)
{
    struct queue *queue = &cell->queue;
    struct job *job;

    /* Jobs that are being read belong between the two. */
    if (cell->backlog && cell->backlog->load)
        return;
    while ((job = queue_last(queue)) && job->record && is_last_too_many(cell, job)) {
        if (!make_backlog(cell) || disk_queue_push_front(&cell->backlog->numbers, job->priority,
                                                         durable_job_number(job)) < 0)
            return;
        queue_remove(queue, job);
        park(cell, job);
    }
}

/* ---- from disk to memory ---- */

static void enqueue(struct cell *cell, struct job *job)
{
    queue_push_back(&cell->queue, job);
    cell_progress_watch(cell);
    cell_wake(cell);
}

/* Releases a reading's job, which may have been cancelled or moved since. */
static void enqueue_parked(struct cell *cell, struct job *job)
{
    if (job->parked && job->cell == cell) {
        take_out_parked(cell, job);
        enqueue(cell, job);
    }
    job_unref(cell->context->jobs, job);
}

/* A job with a chosen id is not found by its number: if the number was read before the row was
 * added, it came to nothing. */
void cell_backlog_on_written(struct job *job, bool added)
{
    struct cell *cell = job->cell;

    if (added && job->name && durable_job_number(job) <= cell->backlog->last_missing) {
        take_out_parked(cell, job);
        enqueue(cell, job);
        return;
    }
    list_unlink(&job->link);
    list_push_back(&cell->backlog->in_review, &job->link);
    cell_wake(cell);
}

static int restore(struct cell *cell, struct loaded_job *loaded, struct job **ret)
{
    int r = cell_restore_job(cell, loaded, NULL, ret);

    if (r != 0)
        return r;
    job_count(&cell->counts, JOBS_ON_DISK, -1);
    job_count(&cell->counts, JOBS_BYTES, (int64_t)job_bytes(*ret));
    submitter_resume(&cell->submitters, *ret);
    return 0;
}

int cell_backlog_restore(struct cell *cell, struct loaded_job *loaded, struct job **ret)
{
    const bool was_later = cell_later_has(cell, loaded->row.number);
    const bool any = cell->backlog && cell->counts.n[JOBS_ON_DISK] > 0;
    int r = any || was_later ? restore(cell, loaded, ret) : CELL_E_MISSING;

    if (r != 0 || cell_later_resume(cell, *ret, &loaded->row) ||
        cell_end_damaged(cell, *ret, loaded))
        return r;
    if (was_later) /* its time has come, but its number is not in the backlog yet */
        cell_enqueue(cell, *ret, false);
    else
        park(cell, *ret);
    return 0;
}

/* Whether the job still belongs to this group: its number stays in the backlog when it moves. */
static bool is_of_group(const struct cell *cell, const struct job_row *row)
{
    const char *name = cell->group->name;

    return row->group_size == strlen(name) && memcmp(row->group, name, row->group_size) == 0;
}

/* Puts the job of a reading into the queue, unless it has ended. Returns 0, -ENOMEM, or
 * CELL_E_EXISTS: another job has its id, until that one has ended and is forgotten. */
static int take_job(struct cell *cell, struct reading *reading, struct loaded_job *loaded)
{
    struct job *job = TAKE_PTR(reading->job);
    int r;

    if (!job && loaded && is_of_group(cell, &loaded->row)) {
        job = durable_job_find(cell->context->durable, &loaded->row);
        if (!job) {
            r = restore(cell, loaded, &job);
            if (r == 0 && !cell_later_resume(cell, job, &loaded->row) &&
                !cell_end_damaged(cell, job, loaded))
                enqueue(cell, job);
            return r;
        }
        (void)job_ref(job);
    }
    if (job)
        enqueue_parked(cell, job);
    else if (!loaded && reading->number.number > cell->backlog->last_missing)
        cell->backlog->last_missing = reading->number.number;
    return 0;
}

/* Takes a reading out of the backlog. Returns 0, CELL_E_EXISTS, or -ENOMEM: it stays there. */
static int take_reading(struct cell *cell, struct reading *reading, struct loaded_job *loaded)
{
    struct disk_queue *numbers = &cell->backlog->numbers;
    int r = take_job(cell, reading, loaded);

    /* A job whose id is taken gives way to the others of its priority. */
    if (r == CELL_E_EXISTS &&
        disk_queue_push_back(numbers, reading->number.priority, reading->number.number) < 0)
        r = -ENOMEM;
    if (r >= 0)
        disk_queue_remove(numbers, &reading->number);
    return r;
}

/* Leaves the readings from the `n`th on in the backlog. */
static void end_readings(struct cell *cell, size_t n, size_t end)
{
    for (; n < end; n++)
        if (cell->backlog->readings[n].job)
            job_unref(cell->context->jobs, cell->backlog->readings[n].job);
}

static void take_readings(struct cell *cell, struct job_load *load, int result)
{
    struct cell_backlog *backlog = cell->backlog;
    bool any = false;
    size_t n = 0;

    backlog->load = NULL;
    for (int r; result == 0 && n < load->n_read; n++) {
        r = take_reading(cell, &backlog->readings[n], load->entries[n].job);
        if (r < 0)
            break;
        any = any || r == 0;
    }
    end_readings(cell, n, load->n);
    if (any)
        cell_wake(cell);
    else
        read_later(cell);
}

static void on_loaded(struct store_task *task, int result)
{
    struct job_load *load = job_load_of(task);
    struct cell *cell = load->owner;

    if (cell)
        take_readings(cell, load, result);
    job_load_free(load);
}

/* Finds the next numbers. Their jobs that are in memory go into the queue immediately, up to the
 * first job that is not. Returns how many are to be read. */
static size_t begin_readings(struct cell *cell, struct job_load *load)
{
    struct cell_backlog *backlog = cell->backlog;
    struct disk_number next[CHUNK];
    const size_t n_next = disk_queue_peek(&backlog->numbers, next, CHUNK);
    size_t n = 0;

    for (size_t i = 0; i < n_next; i++) {
        /* One with a chosen id is not found by its number. */
        struct job *job =
            durable_job_find(cell->context->durable, &(struct job_row){.number = next[i].number});

        if (job)
            (void)job_ref(job);
        backlog->readings[n] = (struct reading){.number = next[i], .job = job};
        load->entries[n].number = next[i].number;
        if (n > 0 || !job)
            n++;
        else
            (void)take_reading(cell, &backlog->readings[0], NULL);
    }
    return n;
}

static bool is_loading_due(const struct cell *cell)
{
    const struct cell_backlog *backlog = cell->backlog;

    return !backlog->load && !timer_armed(&backlog->retry) &&
           disk_queue_priority(&backlog->numbers) < QUEUE_PRIORITIES &&
           cell->queue.n_jobs < CHUNK &&
           (cell->queue.n_jobs == 0 || bytes_in_use(cell) <= few_bytes(cell));
}

static void begin_loading(struct cell *cell)
{
    struct job_load *load = job_load_new(CHUNK);

    if (!load) {
        read_later(cell);
        return;
    }
    load->owner = cell;
    load->bytes_max = few_bytes(cell);
    load->task.done = on_loaded;
    load->n = begin_readings(cell, load);
    if (load->n == 0) {
        job_load_free(load);
        return;
    }
    cell->backlog->load = load;
    store_add(cell->context->durable->store, &load->task);
}

void cell_backlog_turn(struct cell *cell)
{
    if (!group_cell_closed(cell) && is_loading_due(cell)) {
        if (cell->context->durable->takes)
            read_after(cell, TAKEN_RETRY);
        else
            begin_loading(cell);
    }
    review_parked(cell);
}

struct job *cell_backlog_first_parked(const struct cell *cell)
{
    const struct cell_backlog *backlog = cell->backlog;

    if (!backlog)
        return NULL;
    return list_empty(&backlog->in_review)
               ? list_first_entry(&backlog->parked, struct job, link)
               : list_first_entry(&backlog->in_review, struct job, link);
}

void cell_backlog_leave(struct cell *cell)
{
    struct cell_backlog *backlog = cell->backlog;
    const uint64_t n = cell->counts.n[JOBS_ON_DISK];

    if (!backlog)
        return;
    if (backlog->load) {
        end_readings(cell, 0, backlog->load->n);
        backlog->load->owner = NULL;
    }
    timer_disarm(cell_timers(cell), &backlog->retry);
    disk_queue_deinit(&backlog->numbers);
    disk_queue_deinit(&backlog->new_numbers);
    job_count(&cell->counts, JOBS_LIVE, -(int64_t)n);
    job_count(&cell->counts, JOBS_ON_DISK, -(int64_t)n);
    cell->backlog = NULL;
    free(backlog);
    cell_wake(cell);
}
