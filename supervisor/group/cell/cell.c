/* SPDX-License-Identifier: MIT */
#include "supervisor/event/limited-log.h"
#include "supervisor/group/cell/cell-backlog.h"
#include "supervisor/group/cell/cell-command.h"
#include "supervisor/group/cell/cell-limit-key.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/state.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/loop/alarm.h"

#include "supervisor/group/group.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/process/process.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pause of a job that could not be handed over for lack of descriptors or memory. */
#define CELL_HANDOVER_RETRY (100 * USEC_PER_MSEC)

/* Jobs that are set aside in one turn. */
#define CELL_ASIDE_PER_TURN 1024u

usec_t cell_now(const struct cell *cell)
{
    return loop_now(cell->context->loop);
}

void cell_wake(struct cell *cell)
{
    loop_defer(cell->context->loop, &cell->dispatch);
}

void cell_begin_live(struct cell *cell)
{
    list_push_back(&cell->group->cells.live, &cell->live_link);
}

void cell_enqueue(struct cell *cell, struct job *job, bool first)
{
    if (job_waits_for_others(job)) {
        cell_pend(cell, job);
        return;
    }
    if (job->record && cell_backlog_add(cell, job, first))
        return;
    if (first)
        queue_push_front(&cell->queue, job);
    else
        queue_push_back(&cell->queue, job);
    cell_progress_watch(cell);
    cell_wake(cell);
}

void cell_requeue(struct cell *cell, struct job *job, bool first)
{
    job_set_state(job, JOB_QUEUED);
    cell_enqueue(cell, job, first);
}

/* ---- dispatch ---- */

static void cell_assign(struct cell *cell, struct slot *slot, struct job *job)
{
    struct limits *limits = &cell->group->limits;
    bool begun;
    int r;

    queue_remove(&cell->queue, job);
    if (cell->reconfigured)
        cell_take_options(job);
    job_set_state(job, JOB_RUNNING);
    job->attempt++;
    job_count(&cell->counts, JOBS_RUNNING, 1);
    r = limits_begin_any(limits, job, true);
    begun = r == 0;
    if (begun)
        r = slot_assign(slot, job);
    if (r == 0) {
        cell_progress_moved(cell);
        job_tell_waiters(cell->context->jobs, job);
        return;
    }
    job_count(&cell->counts, JOBS_RUNNING, -1);
    if (begun)
        limits_end_any(limits, job, false);
    job->attempt--; /* the worker has not seen it */
    if (r == ENDPOINT_E_FULL && slot_is_up(slot)) {
        cell_requeue(cell, job, true); /* until the worker's inbox has room */
        return;
    }
    limited_log_write(cell->context->log, cell->group->name, LOG_LEVEL_WARNING,
                      "%s: handing over a job failed, trying again: %s", slot->name,
                      r < 0 ? strerror(-r) : "its inbox is full");
    if (slot_is_up(slot)) /* the supervisor lacks descriptors or memory */
        cell_back_off(cell, job, CELL_HANDOVER_RETRY);
    else
        cell_requeue(cell, job, true);
}

/* Whether no job may begin. Until a worker that could not be taken over from the last supervisor
 * has ended, its jobs run, and their keys are not known. */
static bool cell_holds(const struct cell *cell)
{
    return cell->pause != CELL_RUNS || group_cell_closed(cell) ||
           cell->group->drain == GROUP_WORKED_OFF || cell->group->limits.n_ending > 0;
}

/* The next job for a worker; NULL = none. */
static struct job *cell_next(const struct cell *cell)
{
    struct job *job = cell_holds(cell) ? NULL : queue_first(&cell->queue);

    return job && job->record && durable_job_may_exist(job) ? NULL : job;
}

static enum limit_verdict cell_review_next(struct cell *cell, struct job *job,
                                           struct limits *limits)
{
    if (unique_waits(job)) {
        queue_remove(&cell->queue, job);
        limits_leave_queue(&cell->group->limits, job);
        job->aside = true;
        list_push_back(&cell->aside, &job->link);
        return LIMIT_ASIDE;
    }
    return limits ? limits_review(limits, cell, job) : LIMIT_PASSES;
}

/* The supervisor lacks memory to set the job aside. */
static void cell_put_off(struct cell *cell, struct job *job)
{
    queue_remove(&cell->queue, job);
    limits_leave_queue(&cell->group->limits, job);
    cell_back_off(cell, job, CELL_HANDOVER_RETRY);
}

/* Sets the next jobs aside while a gate holds them. Returns the first that no gate holds; NULL =
 * none, or none in this turn. `n_aside`: jobs that were set aside in this turn. */
static struct job *cell_next_ready(struct cell *cell, struct limits *limits, unsigned *n_aside)
{
    struct job *job;

    while ((job = cell_next(cell))) {
        const enum limit_verdict verdict = cell_review_next(cell, job, limits);

        if (verdict == LIMIT_PASSES)
            return job;
        if (verdict == LIMIT_STOPS)
            return NULL;
        if (verdict == LIMIT_LATER)
            cell_put_off(cell, job);
        if (++*n_aside >= CELL_ASIDE_PER_TURN) {
            cell_wake(cell);
            return NULL;
        }
    }
    return NULL;
}

/* Whether the next job may begin. Otherwise writes the rows of as many jobs as there are idle
 * workers: jobs that no worker could have begun must not be charged if everything dies. With
 * Prefetch=, busy workers follow the idle ones. */
static bool cell_may_begin(const struct cell *cell, struct job *job)
{
    if (!job->record || durable_job_may_begin(job))
        return true;
    list_for_each_entry (slot, &cell->pool.available, struct slot, available_link) {
        if (slot->n_jobs > 0)
            break;
        if (job->record)
            durable_job_hand(job);
        job = queue_next(&cell->queue, job);
        if (!job)
            break;
    }
    return false;
}

/* A busy worker gives no job back. So a job with a deadline, which must be able to end in time,
 * waits here until a worker is idle. */
static bool cell_awaits_idle(const struct cell *cell, const struct job *job)
{
    const struct slot *slot = list_first_entry(&cell->pool.available, struct slot, available_link);

    return slot && slot->n_jobs > 0 && job_has_deadline(job);
}

/* Lists the cell at its group while it has queued jobs. Called once in a turn, not with each job. A
 * group's only cell is found without this. */
static void cell_note_queue(struct cell *cell)
{
    if (*cell->key != '\0')
        cell_table_note_queue(&cell->group->cells, cell);
}

static void cell_dispatch(struct loop_deferred *deferred)
{
    struct cell *cell = list_entry(deferred, struct cell, dispatch);
    struct limits *limits;
    unsigned n_aside = 0;
    struct slot *slot;
    struct job *job;

    cell_catch_up(cell);
    pool_step(&cell->pool);
    limits = limits_exist(&cell->group->limits) ? &cell->group->limits : NULL;
    if (cell->config->durable || cell->backlog)
        cell_backlog_shorten_queue(cell);
    while ((job = cell_next_ready(cell, limits, &n_aside)) && !cell_awaits_idle(cell, job) &&
           cell_may_begin(cell, job) && (slot = pool_take_slot(&cell->pool)))
        cell_assign(cell, slot, job);
    if (limits)
        limits_end_turn(limits, cell);
    if (!list_empty(&cell->later.in_review))
        cell_later_turn(cell);
    if (cell->backlog)
        cell_backlog_turn(cell);
    if (config_is_elastic(cell->config))
        cell_elastic_turn(cell);
    cell_note_queue(cell);
    cell_call_waiters(cell);
    if (cell->group->removal != GROUP_STAYS)
        cell->group->cell_handler->drained(cell->group);
    if (cell->group->drain != GROUP_OPEN)
        cell->group->cell_handler->drains(cell->group);
    if (cell_is_retiring(cell) && cell->pool.n_slots == 0)
        cell->group->cell_handler->retired(cell);
}

/* ---- struct pool_handler ---- */

static void cell_on_wake(struct pool *pool)
{
    cell_wake(cell_of_pool(pool));
}

static bool cell_has_job(const struct pool *pool)
{
    return cell_next(cell_of_pool(pool));
}

static void cell_on_down(struct pool *pool)
{
    struct group *group = cell_of_pool(pool)->group;

    group->cell_handler->down(group);
}

static void cell_on_roll_failed(struct pool *pool)
{
    struct cell *cell = cell_of_pool(pool);

    cell->group->cell_handler->roll_failed(cell);
}

static const struct pool_handler CELL_POOL = {
    .wake = cell_on_wake,
    .has_job = cell_has_job,
    .job_started = cell_job_started,
    .job_resumed = cell_job_resumed,
    .job_missed = cell_job_missed,
    .job_checkpoint = cell_job_checkpoint,
    .job_emitted = cell_job_emitted,
    .job_answered = cell_job_answered,
    .job_returned = cell_job_returned,
    .job_lost = cell_job_lost,
    .down = cell_on_down,
    .roll_failed = cell_on_roll_failed,
};

/* ---- cancelling ---- */

void cell_take_out(struct cell *cell, struct job *job)
{
    if (job->state == JOB_PENDING) {
        list_unlink(&job->link);
        job_count(&cell->counts, JOBS_PENDING, -1);
    } else if (job->state != JOB_QUEUED) {
        alarm_stop(&job->pause->alarm);
        list_unlink(&job->link);
        job_count(&cell->counts, JOBS_BACKOFF, -1);
    } else if (job->parked) {
        cell_backlog_forget(cell, job);
        limits_leave_queue(&cell->group->limits, job);
    } else if (job->in_line) {
        limits_take_out(&cell->group->limits, job);
    } else if (job->aside) {
        job->aside = false;
        list_unlink(&job->link);
    } else {
        queue_remove(&cell->queue, job);
        limits_leave_queue(&cell->group->limits, job);
    }
    cell_wake(cell);
}

static void cell_cancel_now(struct cell *cell, struct job *job)
{
    if (job->state == JOB_RUNNING) {
        slot_cancel(job->slot, job);
        return;
    }
    cell_take_out(cell, job);
    cell_end_cancelled(cell, job);
}

static int cell_cancel_durable(struct cell *cell, struct job *job)
{
    int r;

    (void)job_ref(job);
    cell_cancel_now(cell, job);
    if (job->state == JOB_RUNNING && !durable_job_is_settled(job))
        durable_job_update(job, false);
    r = job->record && durable_job_is_busy(job) ? CELL_CANCEL_E_WAIT : 0;
    job_unref(cell->context->jobs, job);
    return r;
}

/* The first request may not be on disk: it is being written, or that has failed. */
static int cell_cancel_again(struct job *job)
{
    if (!job->record)
        return CELL_CANCEL_E_ALREADY;
    if (!durable_job_is_settled(job))
        durable_job_update(job, false);
    return durable_job_is_busy(job) ? CELL_CANCEL_E_ALREADY_WAIT : CELL_CANCEL_E_ALREADY;
}

int cell_cancel(struct job *job, enum protocol_cause cause, uid_t canceller)
{
    struct cell *cell = job->cell;

    if (job_ended(job))
        return CELL_CANCEL_E_ENDED;
    if (job_cancel_requested(job))
        return cell_cancel_again(job);
    if (job->record && durable_job_is_settled(job))
        return CELL_CANCEL_E_WAIT;
    job->cause = (uint8_t)cause;
    job->canceller = canceller;
    unique_review(cell->context->jobs, job);
    if (!job->record) {
        cell_cancel_now(cell, job);
        return 0;
    }
    return cell_cancel_durable(cell, job);
}

static void cell_on_deadline(struct timer *timer, usec_t now)
{
    struct job *job = list_entry(timer, struct job_deadline, timer)->job;

    /* The job may have been cancelled already. */
    (void)cell_cancel(job, PROTOCOL_CAUSE_DEADLINE, JOB_NOBODY);
}

int cell_arm_deadline(struct cell *cell, struct job *job, usec_t at)
{
    if (job_make_deadline(job) < 0)
        return -ENOMEM;
    timer_init(&job->deadline->timer, cell_on_deadline);
    timer_arm(cell_timers(cell), &job->deadline->timer, at);
    return 0;
}

static struct list *first_of(const struct list *list, struct list *otherwise)
{
    return list_empty(list) ? otherwise : list_first(list);
}

/* The first job that is not running. */
static struct job *cell_first_waiting(const struct cell *cell)
{
    struct list *in_review = list_first(&cell->later.in_review);
    struct list *node =
        first_of(&cell->pending, first_of(&cell->backoff, first_of(&cell->aside, in_review)));
    struct job *parked = cell_backlog_first_parked(cell);

    if (!node && !list_empty(&cell->lines))
        return queue_first(list_first_entry(&cell->lines, struct limit_key, link)->held);
    if (node || parked)
        return node ? job_of(node) : parked;
    return queue_first(&cell->queue);
}

static void close_job(struct cell *cell, struct job *job, struct cell_ends *ends)
{
    if (job->record) {
        ends->n_left++;
        cell_leave_on_disk(cell, job);
        return;
    }
    ends->n_cancelled++;
    cell_take_out(cell, job);
    cell_end_job(cell, job, JOB_CANCELLED, group_cell_closed(cell));
}

/* No job that waits is in memory. */
static void leave_rows(struct cell *cell, struct cell_ends *ends)
{
    if (cell->counts.n[JOBS_ON_DISK] > 0)
        cell_note_left(cell);
    ends->n_left += cell->counts.n[JOBS_ON_DISK];
    cell_later_leave(cell);
    cell_backlog_leave(cell);
    submitters_forget_on_disk(&cell->submitters);
    cell_note_gone(cell);
}

bool cell_close_next(struct cell *cell, struct cell_ends *ends)
{
    const bool closed = group_cell_closed(cell);
    struct job *job = closed ? cell_first_waiting(cell) : NULL;

    if (job) {
        close_job(cell, job, ends);
        return true;
    }
    if (cell_turn_away_next(cell))
        return true;
    if (closed)
        leave_rows(cell, ends);
    return false;
}

/* ---- life ---- */

static void cell_on_limit_turn(struct limit_waiter *waiter)
{
    cell_wake(list_entry(waiter, struct cell, limit_waiter));
}

static void cell_set_name(struct cell *cell, const char *key)
{
    const char *group = cell->group->name;

    (void)snprintf(cell->name, sizeof(cell->name), "%s%s%s", group, *key ? "/" : "", key);
    cell->key = cell->name + strlen(group) + (*key != '\0');
}

int cell_new(struct cell **ret, struct group *group, const char *key)
{
    struct cell *cell = calloc(1, sizeof(*cell));
    int r;

    if (!cell)
        return -ENOMEM;
    cell->context = group->context;
    cell->group = group;
    cell->config = group->config;
    cell->pause = group->pause;
    cell->next_command = group->commands.end;
    cell->heard = group->commands.heard;
    cell->left_at = group->reads_again ? group->n_returns : 0;
    cell->idle_since = cell_now(cell);
    cell->counts.parent = &group->counts;
    cell->history.parent = *key ? &group->history : NULL;
    cell_set_name(cell, key);
    submitters_init(&cell->submitters, &group->submitters);
    cell_open_kept(cell);
    pool_init(&cell->pool, &(struct pool_options){
                               .handler = &CELL_POOL,
                               .set = &group->pools,
                               .config = cell->config,
                               .name = cell->name,
                               .key = cell->key,
                           });
    list_init(&cell->link);
    list_init(&cell->live_link);
    queue_init(&cell->queue);
    cell_later_init(cell);
    list_init(&cell->backoff);
    list_init(&cell->aside);
    list_init(&cell->pending);
    list_init(&cell->lines);
    list_init(&cell->limit_waiter.link);
    cell->limit_waiter.turn = cell_on_limit_turn;
    list_init(&cell->waiting);
    list_init(&cell->called);
    timer_init(&cell->idle_timer, cell_on_idle_timer);
    loop_deferred_init(&cell->dispatch, cell_dispatch);
    cell_progress_init(cell);
    cell_elastic_init(cell);
    r = pool_new_actor(&cell->pool, cell->context->messages, group->message_log);
    if (cell->pool.actor)
        cell->pool.actor->paused = cell->pause != CELL_RUNS;
    if (r == 0)
        r = pool_reserve(&cell->pool, group->size);
    if (r < 0) {
        cell_free(cell);
        return r;
    }
    pool_set_size(&cell->pool, group->size);
    *ret = cell;
    return 0;
}

struct cell *cell_free(struct cell *cell)
{
    if (!cell)
        return NULL;
    assert(cell->counts.n[JOBS_LIVE] == 0);
    cell_later_leave(cell);
    cell_backlog_leave(cell);
    while (cell_turn_away_next(cell)) {
    }
    submitters_deinit(&cell->submitters);
    limits_leave(&cell->group->limits, cell);
    timer_disarm(cell_timers(cell), &cell->idle_timer);
    timer_disarm(cell_timers(cell), &cell->size_timer);
    cell->group->n_wanted -= cell->elastic.wanted;
    if (*cell->key != '\0')
        budget_leave(&cell->group->budget, &cell->budget);
    loop_undefer(&cell->dispatch);
    cell_progress_deinit(cell);
    pool_deinit(&cell->pool);
    if (cell->pool.actor)
        actor_end(cell->pool.actor, "its group, or its cell, is gone");
    kept_state_free(&cell->context->pools->process->kept, cell->kept);
    free(cell);
    return NULL;
}

void cell_set_size(struct cell *cell, size_t size)
{
    pool_set_size(&cell->pool, size);
    cell_watch_idle(cell);
    cell_keep(cell);
}

void cell_set_pause(struct cell *cell, enum cell_pause pause)
{
    const bool paused = pause != CELL_RUNS;

    cell_table_note_pause(&cell->group->cells, cell->pause != CELL_RUNS, paused);
    cell->pause = pause;
    cell_keep(cell);
    if (cell->pool.actor)
        paused ? delivery_pause(cell->pool.actor) : delivery_resume(cell->pool.actor);
    cell_wake(cell); /* a paused one leaves its turn at a limit to others */
    if (!paused)
        cell_watch_idle(cell);
}

static enum state current_state(const struct cell *cell)
{
    const enum state state = state_of(&cell->pool.census, cell->pause != CELL_RUNS);
    const bool up = state != STATE_STOPPED && state != STATE_FAILED && state != STATE_STOPPING;

    if (cell_is_retiring(cell))
        return STATE_RETIRING;
    if (cell->pool.size == 0 && cell->pool.wanted)
        return cell->pause == CELL_RUNS ? STATE_RUNNING : STATE_PAUSED;
    return up && outcomes_failing(&cell->history.outcomes) ? STATE_FAILING : state;
}

const char *cell_state(const struct cell *cell)
{
    return state_to_string(current_state(cell));
}

bool cell_is_failing(const struct cell *cell)
{
    return current_state(cell) == STATE_FAILING;
}

void cell_start(struct cell *cell)
{
    pool_start(&cell->pool);
    cell_watch_idle(cell);
    cell_keep(cell);
}

void cell_stop(struct cell *cell, bool hurry)
{
    pool_stop(&cell->pool, hurry);
    cell_keep(cell);
}

void cell_restart(struct cell *cell)
{
    pool_restart(&cell->pool);
    cell_watch_idle(cell);
    cell_keep(cell);
}

void cell_reset(struct cell *cell)
{
    cell->history.outcomes = (struct outcomes){0};
    pool_reset(&cell->pool);
}
