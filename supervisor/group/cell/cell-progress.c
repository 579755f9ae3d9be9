/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-progress.h"

#include "supervisor/event/event-id.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/pool/slot/slot.h"
#include <inttypes.h>

bool cell_progress_look(struct cell_progress *progress, const struct cell_progress_view *view,
                        usec_t now, usec_t *ret_next)
{
    bool stalled = false;

    *ret_next = USEC_INFINITY;
    if (view->period == USEC_INFINITY || !view->has_work)
        return false;
    if (!view->may_move || view->mark != progress->mark)
        progress->moved_at = now;
    else if (usec_sub(now, progress->moved_at) >= view->period)
        stalled = true;
    progress->mark = view->mark;
    if (stalled)
        progress->moved_at = now;
    *ret_next = usec_add(progress->moved_at, view->period);
    return stalled;
}

static struct cell_progress_view cell_progress_view(const struct cell *cell)
{
    struct cell_progress_view view = {
        .period = cell->config->no_progress,
        .has_work = cell->queue.n_jobs + cell->counts.n[JOBS_RUNNING] > 0,
    };

    pool_each_slot (slot, &cell->pool) {
        if (slot->role == SLOT_SPARE)
            continue; /* does no work */
        view.may_move = view.may_move || slot_is_up(slot) || slot->state == LIFECYCLE_STOPPING;
        /* Pairs with unordered stores of the worker: any change will do. */
        if (slot->worker.endpoint_open)
            view.mark += atomic_load_explicit(
                &slot->worker.endpoint.channel.theirs.header->state_sequence, memory_order_relaxed);
    }
    view.may_move = view.may_move && cell->pause == CELL_RUNS && !cell->limit_waiter.at;
    return view;
}

static void progress_tell(struct cell *cell)
{
    pool_tell(&cell->pool,
              (struct event){.level = LOG_LEVEL_ERROR,
                             .type = "group.stalled",
                             .message_id = EVENT_ID_STALLED},
              "stalls: no progress being made: %" PRIu64 " running, %" PRIu64
              " queued, and nothing has moved for %g s; its workers are restarted",
              cell->counts.n[JOBS_RUNNING], cell->queue.n_jobs,
              (double)cell->config->no_progress / USEC_PER_SEC);
}

/* The death of a worker with a job is an attempt of the job; others merely restart. */
static void progress_restart(struct cell *cell)
{
    pool_each_slot (slot, &cell->pool)
        if (slot_kill(slot, slot->n_jobs > 0 ? DEATH_NO_PROGRESS : DEATH_STOP) &&
            slot->plan == SLOT_ON)
            slot->plan = SLOT_AGAIN;
}

static void progress_on_timer(struct timer *timer, usec_t now)
{
    struct cell *cell = list_entry(timer, struct cell, progress.timer);
    const struct cell_progress_view view = cell_progress_view(cell);
    usec_t next;

    if (cell_progress_look(&cell->progress, &view, now, &next)) {
        progress_tell(cell);
        progress_restart(cell);
    }
    timer_arm(cell_timers(cell), timer, next);
}

void cell_progress_init(struct cell *cell)
{
    timer_init(&cell->progress.timer, progress_on_timer);
}

void cell_progress_deinit(struct cell *cell)
{
    timer_disarm(cell_timers(cell), &cell->progress.timer);
}

void cell_progress_watch(struct cell *cell)
{
    if (cell->config->no_progress == USEC_INFINITY || timer_armed(&cell->progress.timer))
        return;
    cell_progress_moved(cell);
    cell->progress.mark = cell_progress_view(cell).mark;
    timer_arm(cell_timers(cell), &cell->progress.timer,
              usec_add(cell_now(cell), cell->config->no_progress));
}

void cell_progress_reset(struct cell *cell)
{
    cell_progress_deinit(cell);
    if (cell_progress_view(cell).has_work)
        cell_progress_watch(cell);
}

void cell_progress_note(struct cell *cell)
{
    cell->progress.moved_at = cell_now(cell);
}
