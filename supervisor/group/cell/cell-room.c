/* SPDX-License-Identifier: MIT */
/*
 * Room in a cell's queue, and senders that wait for it: first come, first served. When there is
 * room the next one is called, and the room is kept for it until it submits its job again. As long
 * as any wait, the queue is full for others. But a submitter whose job does not fit yet does
 * not hold up others, even if their jobs never leave enough room for it.
 */

#include "shared/base/cleanup.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/loop/loop.h"
#include <sys/param.h>

/* Rough size of a job beside its payload. */
#define JOB_COST 1024

/* Other cells do not report when they free memory of the group: try again. */
#define GROUP_RETRY (100 * USEC_PER_MSEC)

/* How long a sender waits for the store of durable jobs, which is being opened. */
#define STORE_WAIT (30 * USEC_PER_SEC)

enum room {
    ROOM_FREE,
    ROOM_NONE_HERE,
    ROOM_NONE_IN_GROUP, /* CellsQueueMemoryMax= */
};

/* The memory that jobs take. */
static uint64_t cost_of(const struct job_counts *counts)
{
    return counts->n[JOBS_BYTES] + (counts->n[JOBS_LIVE] - counts->n[JOBS_ON_DISK]) * JOB_COST;
}

/* Whether the job fits into CellsQueueMemoryMax=, of which each cell has a guaranteed share. */
static bool cell_fits_in_group(const struct cell *cell, uint64_t size)
{
    const struct group *group = cell->group;
    const uint64_t max = cell->config->cells_queue_memory_max;

    if (*cell->key == '\0' || cost_of(&group->counts) + size + JOB_COST <= max)
        return true;
    return cost_of(&cell->counts) + size + JOB_COST <= max / cell->config->cells_max;
}

bool cell_may_ever_fit(const struct cell *cell, uint64_t size)
{
    const struct config_group *config = cell->config;

    return size <= config->queue_memory_max &&
           (*cell->key == '\0' || size <= config->cells_queue_memory_max - JOB_COST);
}

static enum room cell_room(const struct cell *cell, uint64_t size)
{
    const struct config_group *config = cell->config;

    if (job_counts_waiting(&cell->counts) >= config->queue_max ||
        cell->counts.n[JOBS_BYTES] > config->queue_memory_max - size)
        return ROOM_NONE_HERE;
    if (!cell_fits_in_group(cell, size))
        return ROOM_NONE_IN_GROUP;
    return ROOM_FREE;
}

bool cell_may_grow(const struct cell *cell, uint64_t size)
{
    return cell->counts.n[JOBS_BYTES] + size <= cell->config->queue_memory_max &&
           cell_fits_in_group(cell, size);
}

/* Whether there is room that is not kept for a called waiter. */
static bool has_room_beside_called(const struct cell *cell, uint64_t size)
{
    const struct config_group *config = cell->config;

    return job_counts_waiting(&cell->counts) + cell->n_called < config->queue_max &&
           cell->counts.n[JOBS_BYTES] + cell->called_bytes + size <= config->queue_memory_max;
}

/* Returns the sender whose turn is next, perhaps not yet; NULL = none. Small jobs do not overtake a
 * large one, unless that is a submitter's. */
static struct cell_waiter *first_in_line(const struct cell *cell)
{
    list_for_each_entry (waiter, &cell->waiting, struct cell_waiter, link)
        if (!waiter->bounded ||
            (has_room_beside_called(cell, waiter->size) && cell_fits_in_group(cell, waiter->size)))
            return waiter;
    return NULL;
}

/* Whether the queue has room for a payload of this size that no other submitter waits for. */
static bool cell_has_room(const struct cell *cell, uint64_t size)
{
    return cell_may_ever_fit(cell, size) && has_room_beside_called(cell, size) &&
           cell_room(cell, size) == ROOM_FREE && !first_in_line(cell);
}

/* Returns the jobs of a user that wait, and the bytes of these and of those that run. */
static struct submitter_jobs jobs_of(const struct submitters *submitters, uid_t uid,
                                     const struct job_counts *all)
{
    const struct submitter *own = submitter_find(submitters, uid);
    struct submitter_jobs jobs = {0};

    if (!own)
        return jobs;
    jobs.n = MIN(own->waiting.n, job_counts_waiting(all));
    jobs.bytes = own->running.bytes + (jobs.n > 0 ? own->waiting.bytes : 0);
    return jobs;
}

/* With keys, CellsQueueMemoryMax= bounds the jobs in all cells. */
static bool exceeds_share_of_group(const struct cell *cell, uid_t uid, uint64_t more)
{
    const struct job_counts *all = &cell->group->counts;
    const struct submitter_jobs own = jobs_of(&cell->group->submitters, uid, all);
    const uint64_t cost = own.bytes + own.n * JOB_COST;

    return *cell->key != '\0' && cost > 0 &&
           cost + more + JOB_COST + MAX(cost_of(all), cost) > cell->config->cells_queue_memory_max;
}

/* `more`: the bytes that come, and as many that remain for others. */
static bool exceeds_bytes(const struct cell *cell, uid_t uid, uint64_t more)
{
    const struct submitter_jobs own = jobs_of(&cell->submitters, uid, &cell->counts);
    /* Those that wait on disk may all come into memory. */
    const uint64_t all = MAX(cell->counts.n[JOBS_BYTES], own.bytes);

    return (own.bytes > 0 && own.bytes + more + all > cell->config->queue_memory_max) ||
           exceeds_share_of_group(cell, uid, more);
}

bool cell_job_may_grow(const struct cell *cell, const struct job *job, uint64_t size)
{
    return cell_may_grow(cell, size) &&
           !(job->submitter && exceeds_bytes(cell, job->submitter_uid, 2 * size));
}

bool cell_exceeds_share(const struct cell *cell, const struct cell_request *request)
{
    const struct job_counts *here = &cell->counts;
    const uid_t uid = request->submitter_uid;
    const struct submitter_jobs own = jobs_of(&cell->submitters, uid, here);

    return (own.n > 0 && own.n + 1 + job_counts_waiting(here) > cell->config->queue_max) ||
           exceeds_bytes(cell, uid, 2 * request->size);
}

int cell_admits(const struct cell *cell, const struct cell_request *request)
{
    if (!cell_may_ever_fit(cell, request->size))
        return CELL_E_TOO_LARGE;
    return cell_has_room(cell, request->size) &&
                   !(request->bounded && cell_exceeds_share(cell, request))
               ? 0
               : CELL_E_BUSY;
}

static void cell_waiter_leave(struct cell_waiter *waiter)
{
    struct cell *cell = waiter->cell;

    timer_disarm(cell_timers(cell), &waiter->timer);
    list_unlink(&waiter->link);
    if (waiter->called) {
        cell->n_called--;
        cell->called_bytes -= waiter->size;
    }
    job_count(&cell->counts, JOBS_WAITERS, -1);
    waiter->called = false;
    waiter->cell = NULL;
}

static void cell_call(struct cell_waiter *waiter)
{
    struct cell *cell = waiter->cell;

    timer_disarm(cell_timers(cell), &waiter->timer);
    list_unlink(&waiter->link);
    list_push_back(&cell->called, &waiter->link);
    waiter->called = true;
    cell->n_called++;
    cell->called_bytes += waiter->size;
    waiter->turn(waiter);
}

static void cell_on_waiter_timer(struct timer *timer, usec_t now)
{
    struct cell_waiter *waiter = list_entry(timer, struct cell_waiter, timer);

    if (now < waiter->deadline) {
        cell_call(waiter); /* the group may have room now */
        return;
    }
    waiter->expired = true;
    cell_wake(waiter->cell); /* the next waiter may fit */
    cell_waiter_leave(waiter);
    waiter->turn(waiter);
}

void cell_waiter_init(struct cell_waiter *waiter, void (*turn)(struct cell_waiter *waiter))
{
    *waiter = (struct cell_waiter){.turn = turn};
    list_init(&waiter->link);
    timer_init(&waiter->timer, cell_on_waiter_timer);
}

static void stop_waiting_for_row(struct cell_waiter *waiter)
{
    struct job_waiter *row = TAKE_PTR(waiter->row);

    if (row)
        job_waiter_free(row->job->cell->context->jobs, row);
}

static void on_row(struct job_waiter *row, struct job *job)
{
    struct cell_waiter *waiter = row->owner;

    stop_waiting_for_row(waiter);
    waiter->turn(waiter);
}

int cell_await_row(const struct cell_request *request, struct job *other)
{
    struct cell_waiter *waiter = request->waiter;

    if (!waiter)
        return CELL_E_BUSY;
    stop_waiting_for_row(waiter);
    waiter->row = job_waiter_new(other->cell->context->jobs, other);
    if (!waiter->row)
        return -ENOMEM;
    waiter->row->changed = on_row;
    waiter->row->owner = waiter;
    durable_job_await(other, waiter->row);
    return CELL_E_WAIT;
}

void cell_waiter_stop(struct cell_waiter *waiter)
{
    struct cell *cell = waiter->cell;

    stop_waiting_for_row(waiter);
    if (waiter->search)
        waiter->end_search(waiter);
    if (!cell)
        return;
    cell_waiter_leave(waiter);
    cell_wake(cell); /* the next waiter may fit */
}

void cell_waiter_reset(struct cell_waiter *waiter)
{
    cell_waiter_stop(waiter);
    waiter->deadline = 0;
    waiter->expired = false;
}

static void cell_join(struct cell *cell, const struct cell_request *request, bool first)
{
    struct cell_waiter *waiter = request->waiter;

    waiter->cell = cell;
    waiter->size = request->size;
    waiter->bounded = request->bounded;
    if (first)
        list_push_front(&cell->waiting, &waiter->link);
    else
        list_push_back(&cell->waiting, &waiter->link);
    job_count(&cell->counts, JOBS_WAITERS, 1);
}

/* Starts to wait: last, or first if it was called but the group has no room after all. */
static int cell_wait(struct cell *cell, const struct cell_request *request, enum room room,
                     bool first)
{
    struct cell_waiter *waiter = request->waiter;
    usec_t now = cell_now(cell), due;

    if (waiter->deadline == 0) {
        waiter->since = now;
        waiter->deadline = usec_add(now, request->wait);
        if (request->deadline > 0 && request->deadline < request->wait)
            waiter->deadline = usec_add(now, request->deadline);
    }
    due = waiter->deadline;
    if (room == ROOM_NONE_IN_GROUP && due > now + GROUP_RETRY)
        due = now + GROUP_RETRY;
    timer_arm(cell_timers(cell), &waiter->timer, due);
    cell_join(cell, request, first);
    return CELL_E_WAIT;
}

int cell_await_store(struct cell *cell, const struct cell_request *request)
{
    struct cell_waiter *waiter = request->waiter;

    if (!waiter || waiter->expired)
        return CELL_E_STORE_FAILED;
    if (waiter->cell == cell && !waiter->called)
        return CELL_E_WAIT;
    cell_waiter_stop(waiter);
    timer_arm(cell_timers(cell), &waiter->timer, usec_add(cell_now(cell), STORE_WAIT));
    cell_join(cell, request, false);
    return CELL_E_WAIT;
}

/* Whether senders that have waited for the store have room, and are still to be called. */
static bool is_about_to_call(const struct cell *cell)
{
    const struct cell_waiter *next = first_in_line(cell);

    return next && has_room_beside_called(cell, next->size);
}

int cell_find_room(struct cell *cell, const struct cell_request *request)
{
    struct cell_waiter *waiter = request->waiter;
    enum room room = ROOM_NONE_HERE;
    bool called = false;

    if (waiter && waiter->cell) {
        if (waiter->cell == cell && !waiter->called)
            return CELL_E_WAIT; /* not its turn yet */
        called = waiter->cell == cell;
        if (called)
            cell_waiter_leave(waiter);
        else
            cell_waiter_stop(waiter);
    }
    if (called || (has_room_beside_called(cell, request->size) &&
                   (list_empty(&cell->waiting) || !first_in_line(cell))))
        room = cell_room(cell, request->size);
    if (room == ROOM_FREE)
        return 0;
    if (!waiter || waiter->expired)
        return CELL_E_BUSY;
    if (request->wait == 0) /* perhaps it is called after them */
        return !called && is_about_to_call(cell) ? cell_await_store(cell, request) : CELL_E_BUSY;
    return cell_wait(cell, request, room, called);
}

void cell_call_waiters(struct cell *cell)
{
    struct cell_waiter *next;

    if (list_empty(&cell->waiting) || group_store_is_opening(cell->group))
        return;
    while ((next = first_in_line(cell)) && has_room_beside_called(cell, next->size))
        cell_call(next);
}

void cell_turn_away_misfits(struct cell *cell)
{
    list_for_each_entry_safe (waiter, &cell->waiting, struct cell_waiter, link) {
        if (cell_may_ever_fit(cell, waiter->size))
            continue;
        cell_waiter_leave(waiter);
        waiter->turn(waiter);
    }
}

bool cell_turn_away_next(struct cell *cell)
{
    const struct list *line = list_empty(&cell->waiting) ? &cell->called : &cell->waiting;
    struct cell_waiter *waiter = list_first_entry(line, struct cell_waiter, link);

    if (!waiter)
        return false;
    cell_waiter_leave(waiter);
    waiter->turn(waiter);
    return true;
}
