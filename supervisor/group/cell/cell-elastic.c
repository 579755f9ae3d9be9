/* SPDX-License-Identifier: MIT */
/* Gives elastic pools their size: see supervisor/pool/elastic.h. */

#include "supervisor/event/limited-log.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/pool/slot/slot.h"
#include <inttypes.h>

/* When a pool that could not change its size tries again. */
#define ELASTIC_RETRY USEC_PER_SEC

static bool hands_out(const struct cell *cell)
{
    return cell->pause == CELL_RUNS && !group_cell_closed(cell) &&
           cell->group->drain != GROUP_WORKED_OFF;
}

/* Counts queued jobs, without those on disk that begin much later. */
static uint64_t n_in_queue(const struct cell *cell)
{
    const uint64_t n = cell->counts.n[JOBS_ON_DISK], n_later = cell->later.jobs.by_number.n_entries;

    return cell->queue.n_jobs + (n > n_later ? n - n_later : 0);
}

/* Whether a message waits while the pool has no worker: one for the pool, or for the slot whose
 * template rests. */
static bool has_message(const struct cell *cell)
{
    const struct pool *pool = &cell->pool;
    const struct actor *first = pool->n_slots > 0 ? pool->slots[0]->actor : NULL;

    return (pool->actor && !mailbox_idle(&pool->actor->mailbox)) ||
           (pool->size == 0 && first && !mailbox_idle(&first->mailbox));
}

/* Jobs that a worker could begin. While a limit holds the next one, one worker is enough, busy or
 * not: the limit gives the cell its turn. */
static uint64_t n_could_begin(const struct cell *cell)
{
    const uint64_t n = n_in_queue(cell);

    if (!hands_out(cell))
        return 0;
    if (n == 0)
        return has_message(cell);
    return cell->limit_waiter.at ? cell->counts.n[JOBS_RUNNING] == 0 : n;
}

static struct elastic_view cell_elastic_view(const struct cell *cell)
{
    const uint64_t *n = cell->counts.n;
    const uint64_t done = n[JOBS_SUCCEEDED] + n[JOBS_REJECTED] + n[JOBS_DEAD] + n[JOBS_RETRIES];

    return (struct elastic_view){
        .n_entered = done + n[JOBS_CANCELLED] + n[JOBS_ENDING] + n[JOBS_RUNNING] + n_in_queue(cell),
        .n_done = done,
        .n_queued = n_could_begin(cell),
        .n_running = n[JOBS_RUNNING],
        .size = cell->pool.size,
        .n_up = cell->pool.census.n[CENSUS_UP],
        .start_time = cell->pool.start_time,
        .pressed_until = cell->group->pressure.until,
        .n_reliefs = cell->group->pressure.n_reliefs,
    };
}

static bool is_under_pressure(const struct cell *cell)
{
    return cell_now(cell) < cell->group->pressure.until;
}

static void tell_size(struct cell *cell, size_t before)
{
    const bool grows = cell->pool.size > before;
    const uint64_t n = n_in_queue(cell);

    pool_tell(&cell->pool,
              (struct event){.level = LOG_LEVEL_INFO, .type = grows ? "pool.grown" : "pool.shrunk"},
              "%s from %zu to %zu: %" PRIu64 " wanted; %" PRIu64 " job%s wait%s, %" PRIu64
              " running, a job takes %" PRIu64 " ms%s",
              grows ? "grows" : "shrinks", before, cell->pool.size, cell->elastic.wanted, n,
              n == 1 ? "" : "s", n == 1 ? "s" : "", cell->counts.n[JOBS_RUNNING],
              elastic_job_time(&cell->elastic) / USEC_PER_MSEC,
              !grows && is_under_pressure(cell) ? "; under pressure" : "");
}

/* Whether the pool keeps this worker: a busy one, except under pressure or if another pool waits
 * for a worker. Then the worker ends its job first. */
static bool is_missed(const struct slot *slot, bool gives_way)
{
    if (slot->n_jobs > 0 && gives_way)
        return !mailbox_idle(&slot->actor->mailbox) || delivery_has_unhandled(slot->actor, true);
    return cell_actor_is_missed(slot->actor);
}

/* Returns how small the pool can become while it keeps these workers. */
static size_t least_size(const struct cell *cell, size_t size, bool gives_way)
{
    size_t n = cell->pool.size;

    while (n > size && !is_missed(cell->pool.slots[n - 1], gives_way))
        n--;
    return n;
}

/* Returns false if this is to be tried again. A worker with messages goes later, and one with
 * names, timers or subscriptions when something else happens. */
static bool cell_take_size(struct cell *cell, size_t size, bool gives_way)
{
    const size_t before = cell->pool.size;
    const struct actor *last = size < before ? cell->pool.slots[before - 1]->actor : NULL;

    if (last)
        size = least_size(cell, size, gives_way);
    if (size == before)
        return !last || delivery_is_quiet(last);
    if (pool_reserve(&cell->pool, size) < 0) {
        limited_log_write(cell->context->log, cell->group->name, LOG_LEVEL_ERROR,
                          "%s: out of memory for more workers, trying again", cell->name);
        return false;
    }
    cell_set_size(cell, size);
    cell->group->cell_handler->sized(cell);
    tell_size(cell, before);
    return true;
}

/* Leaves a timer that fires earlier as it is: an early decision does no harm. */
static void arm_for(struct cell *cell, usec_t at)
{
    struct timer *timer = &cell->size_timer;

    if (at == USEC_INFINITY || !timer_armed(timer) || timer_at(timer) > at)
        timer_arm(cell_timers(cell), timer, at);
}

/* Lowers the highest number to the cell's share of PoolMax=. */
static void find_share(struct cell *cell, const struct elastic_view *view,
                       struct elastic_bounds *bounds)
{
    const struct submitter *maker = cell->submitters.maker;
    struct budget *budget = &cell->group->budget;
    const usec_t now = cell_now(cell);
    const uint64_t all = elastic_want(&cell->elastic, bounds, view, now);
    const size_t wanted = all < bounds->high ? (size_t)all : bounds->high;
    size_t limit;

    budget_set_user(budget, &cell->budget, maker ? maker->by_uid.key : 0);
    budget_want(budget, &cell->budget, wanted);
    limit = budget_limit(budget, &cell->budget, bounds->idle, now);
    bounds->shared = limit < wanted || limit < view->size;
    if (bounds->shared)
        bounds->high = limit;
}

/* Counts workers, including those that stop. */
static size_t n_workers(const struct cell *cell)
{
    const struct pool *pool = &cell->pool;
    const bool rests = pool->size == 0 && pool->n_slots == 1 && slot_is_down(pool->slots[0]);
    const bool stopped = !pool->wanted && census_down(&pool->census);

    return rests || stopped ? 0 : pool->n_slots;
}

static bool heeds_pressure(const struct config_group *config)
{
    return config->memory_pressure != USEC_INFINITY || config->cpu_pressure != USEC_INFINITY ||
           config->io_pressure != USEC_INFINITY;
}

/* Returns when to decide again. */
static usec_t decide(struct cell *cell)
{
    const struct elastic_view view = cell_elastic_view(cell);
    struct elastic_bounds bounds = {
        .low = cell->config->size.low,
        .high = cell->config->size.high,
        .target_wait = cell->config->target_wait,
        .idle = cell->config->idle,
        .settle = heeds_pressure(cell->config) ? PRESSURE_WINDOW : 0,
    };
    struct elastic_decision decision;

    if (*cell->key != '\0')
        find_share(cell, &view, &bounds);
    decision = elastic_decide(&cell->elastic, &bounds, &view, cell_now(cell));
    if (!cell_take_size(cell, decision.size, bounds.shared || is_under_pressure(cell)))
        return usec_add(cell_now(cell), ELASTIC_RETRY);
    return decision.next;
}

void cell_elastic_turn(struct cell *cell)
{
    const bool decides = cell->pool.wanted && !cell_is_retiring(cell) && !cell->config->fault;
    struct budget *budget = &cell->group->budget;
    usec_t next = USEC_INFINITY;

    cell->group->n_wanted -= cell->elastic.wanted;
    cell->elastic.wanted = 0;
    if (decides)
        next = decide(cell);
    cell->group->n_wanted += cell->elastic.wanted;
    if (*cell->key != '\0' && !decides)
        budget_want(budget, &cell->budget, 0);
    if (*cell->key != '\0')
        next = usec_min(next, budget_note(budget, &cell->budget, n_workers(cell),
                                          cell->config->idle, cell_now(cell)));
    arm_for(cell, next);
}

void cell_decide_again(struct budget_part *part)
{
    cell_wake(list_entry(part, struct cell, budget));
}

static void on_timer(struct timer *timer, usec_t now)
{
    cell_wake(list_entry(timer, struct cell, size_timer));
}

void cell_elastic_init(struct cell *cell)
{
    timer_init(&cell->size_timer, on_timer);
    budget_part_init(&cell->budget);
}
