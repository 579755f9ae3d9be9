/* SPDX-License-Identifier: MIT */
/*
 * Room in a cell's queue, and those who wait for it: first come, first served. For each place that
 * becomes free the next one is called, and nobody else; it comes again with its job, from its own
 * turn of the loop. Until then the place is kept for it: who does not wait is told that the queue
 * is full as long as anybody does.
 */

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/loop/loop.h"

/* What a job takes beside its payload, roughly. */
#define JOB_COST 1024

/* When there is no room because of other cells, nobody here is told when there is: try again. */
#define ELSEWHERE_RETRY (100 * USEC_PER_MSEC)

enum room {
    ROOM,
    ROOM_NONE_HERE,
    ROOM_NONE_ELSEWHERE, /* in the whole group's memory */
};

/* CellsQueueMemoryMax=: beyond it, whoever has less than his share still gets it. */
static bool cell_fits_in_group(const struct cell *cell, uint64_t size)
{
    const struct group *group = cell->group;
    const uint64_t max = cell->config->cells_queue_memory_max;

    if (*cell->key == '\0' ||
        group->counts.n[JOBS_BYTES] + size + (group->counts.n[JOBS_LIVE] + 1) * JOB_COST <= max)
        return true;
    return cell->counts.n[JOBS_BYTES] + size + (cell->counts.n[JOBS_LIVE] + 1) * JOB_COST <=
           max / cell->config->cells_max;
}

bool cell_may_ever_fit(const struct cell *cell, uint64_t size)
{
    const struct config_group *config = cell->config;

    return size <= config->queue_memory_max &&
           (*cell->key == '\0' || size <= config->cells_queue_memory_max - JOB_COST);
}

static enum room cell_room(struct cell *cell, const struct cell_request *request)
{
    const struct config_group *config = cell->config;

    if (cell->queue.n_jobs + cell->counts.n[JOBS_BACKOFF] >= config->queue_max ||
        cell->counts.n[JOBS_BYTES] > config->queue_memory_max - request->size)
        return ROOM_NONE_HERE;
    if (!cell_fits_in_group(cell, request->size))
        return ROOM_NONE_ELSEWHERE;
    return ROOM;
}

/* ---- waiting ---- */

/* Out of whichever line it stands in. */
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
        cell_call(waiter); /* there was no room elsewhere */
        return;
    }
    waiter->expired = true;
    cell_wake(waiter->cell); /* the next one may need less */
    cell_waiter_leave(waiter);
    waiter->turn(waiter);
}

void cell_waiter_init(struct cell_waiter *waiter, void (*turn)(struct cell_waiter *waiter))
{
    *waiter = (struct cell_waiter){.turn = turn};
    list_init(&waiter->link);
    timer_init(&waiter->timer, cell_on_waiter_timer);
}

void cell_waiter_stop(struct cell_waiter *waiter)
{
    struct cell *cell = waiter->cell;

    if (!cell)
        return;
    cell_waiter_leave(waiter);
    cell_wake(cell); /* the next one's turn, perhaps */
}

void cell_waiter_reset(struct cell_waiter *waiter)
{
    cell_waiter_stop(waiter);
    waiter->deadline = 0; /* no longer, or never, waiting */
    waiter->expired = false;
}

/* Joins the line: at its head if it was called and there is no room after all (elsewhere). */
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
    if (room == ROOM_NONE_ELSEWHERE && due > now + ELSEWHERE_RETRY)
        due = now + ELSEWHERE_RETRY;
    if (timer_arm(cell_timers(cell), &waiter->timer, due) < 0)
        return CELL_E_BUSY;
    waiter->cell = cell;
    waiter->size = request->size;
    if (first)
        list_push_front(&cell->waiting, &waiter->link);
    else
        list_push_back(&cell->waiting, &waiter->link);
    job_count(&cell->counts, JOBS_WAITERS, 1);
    return CELL_E_WAIT;
}

int cell_find_room(struct cell *cell, const struct cell_request *request)
{
    struct cell_waiter *waiter = request->waiter;
    enum room room = ROOM_NONE_HERE;
    bool called = false;

    if (waiter && waiter->cell) {
        if (waiter->cell == cell && !waiter->called)
            return CELL_E_WAIT; /* it came by itself */
        called = waiter->cell == cell;
        if (called)
            cell_waiter_leave(waiter);
        else
            cell_waiter_stop(waiter);
    }
    if (called || (list_empty(&cell->waiting) && cell->n_called == 0))
        room = cell_room(cell, request);
    if (room == ROOM)
        return 0;
    if (!waiter || request->wait == 0 || waiter->expired)
        return CELL_E_BUSY;
    return cell_wait(cell, request, room, called);
}

/* Room that is neither taken nor kept for somebody who was called. */
static bool cell_has_room_for(const struct cell *cell, const struct cell_waiter *waiter)
{
    const struct config_group *config = cell->config;

    return cell->queue.n_jobs + cell->counts.n[JOBS_BACKOFF] + cell->n_called < config->queue_max &&
           cell->counts.n[JOBS_BYTES] + cell->called_bytes + waiter->size <=
               config->queue_memory_max;
}

void cell_call_waiters(struct cell *cell)
{
    struct list *node;

    while ((node = list_first(&cell->waiting))) {
        struct cell_waiter *waiter = list_entry(node, struct cell_waiter, link);

        /* A large one is not overtaken by small ones for which there would be room. */
        if (!cell_has_room_for(cell, waiter))
            return;
        cell_call(waiter);
    }
}

void cell_turn_away_misfits(struct cell *cell)
{
    list_for_each_safe (node, &cell->waiting) {
        struct cell_waiter *waiter = list_entry(node, struct cell_waiter, link);

        if (cell_may_ever_fit(cell, waiter->size))
            continue;
        cell_waiter_leave(waiter);
        waiter->turn(waiter);
    }
}

void cell_turn_away(struct cell *cell)
{
    struct list *node;

    while ((node = list_first(&cell->waiting)) || (node = list_first(&cell->called))) {
        struct cell_waiter *waiter = list_entry(node, struct cell_waiter, link);

        cell_waiter_leave(waiter);
        waiter->turn(waiter);
    }
}
