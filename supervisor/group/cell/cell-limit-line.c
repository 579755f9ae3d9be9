/* SPDX-License-Identifier: MIT */
/* The lines of keys: jobs of keys that have reached a limit per key. */

#include "supervisor/group/cell/cell-limit-line.h"

#include "shared/base/fault.h"
#include "shared/base/hash.h"
#include "supervisor/group/cell/cell-private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Durable jobs that wait on disk are read to be set aside, and then stay in memory: no more than
 * so many. */
#define ASIDE_MAX 10000

/* Lines that are looked at in one turn: many may be due at the same time. */
#define LINES_PER_TURN 256u

/* ---- lines ---- */

static struct config_bounds bounds_of(const struct limits *limits)
{
    return limits->key_bounds;
}

/* When the bucket of a key is empty that is not known. */
static uint64_t unknown_empty_at(const struct limits *limits, const struct config_bounds *bounds)
{
    return limits->taken_over > 0 && limit_has_rate(bounds)
               ? limit_full_at(bounds, limits->taken_over)
               : 0;
}

/* After a change none of its jobs counts that limits_begin() has not named since. */
static void update(struct limits *limits, struct limit_line *line)
{
    uint64_t full;

    if (line->change == limits->n_changes)
        return;
    line->change = limits->n_changes;
    line->bounds = bounds_of(limits);
    line->level.taken = 0;
    full =
        limit_has_rate(&line->bounds) ? limit_full_at(&line->bounds, limit_now(limits->loop)) : 0;
    if (line->level.empty_at > full)
        line->level.empty_at = full;
}

static struct limit_line *find_line(const struct limits *limits, const struct job *job)
{
    struct index_entry *entry = job->key_size > 0 && limits->keys.n_entries > 0
                                    ? index_find(&limits->keys, hash_bytes(job->key, job->key_size))
                                    : NULL;

    for (; entry; entry = index_find_next(entry)) {
        struct limit_line *line = list_entry(entry, struct limit_line, by_key);

        if (line->key_size == job->key_size && memcmp(line->key, job->key, job->key_size) == 0)
            return line;
    }
    return NULL;
}

static struct limit_line *take_line(struct limits *limits, const struct job *job)
{
    struct limit_line *line = find_line(limits, job);

    if (line)
        update(limits, line);
    return line;
}

static struct limit_line *make_line(struct limits *limits, const struct job *job)
{
    struct limit_line *line = take_line(limits, job);

    if (line)
        return line;
    line = fault_inject("limit") < 0 ? NULL : calloc(1, sizeof(*line) + job->key_size);
    if (!line)
        return NULL;
    if (heap_reserve(&limits->times, limits->keys.n_entries + 1) < 0) {
        free(line);
        return NULL;
    }
    list_init(&line->link);
    list_init(&line->all_link);
    list_push_back(&limits->all, &line->all_link);
    line->change = limits->n_changes;
    line->seen = limits->n_reviews;
    line->bounds = bounds_of(limits);
    line->level.empty_at = unknown_empty_at(limits, &line->bounds);
    line->key_size = job->key_size;
    memcpy(line->key, job->key, job->key_size);
    index_add(&limits->keys, &line->by_key, hash_bytes(job->key, job->key_size));
    return line;
}

static enum limit_gate gate_of(const struct limits *limits, const struct limit_line *line,
                               unsigned cost)
{
    const struct limit_level level = {.empty_at = line->level.empty_at,
                                      .taken = line->level.taken + limits->n_uncounted};

    for (enum limit_gate gate = LIMIT_RATE; gate <= LIMIT_RUNNING; gate++)
        if (limit_level_holds(&line->bounds, &level, cost, gate, limit_now(limits->loop)))
            return gate;
    return LIMIT_NONE;
}

static void arm(struct limits *limits)
{
    const struct heap_node *first = heap_first(&limits->times);
    usec_t at = first ? first->key / NSEC_PER_USEC + 1 : USEC_INFINITY;

    if (at <= loop_now(limits->loop))
        at = loop_now(limits->loop) + 1; /* in the next turn */
    /* Without memory, the next job that ends has the lines looked at. */
    (void)timer_arm(loop_timers(limits->loop), &limits->timer, at);
}

static void look_at(struct limits *limits, struct limit_line *line, uint64_t at)
{
    (void)heap_set(&limits->times, &line->by_time, at); /* there is room */
    arm(limits);
}

static void leave_idle(struct limits *limits, struct limit_line *line)
{
    if (!line->idle)
        return;
    line->idle = false;
    limits->n_idle--;
    list_unlink(&line->link);
}

static void forget(struct limits *limits, struct limit_line *line)
{
    leave_idle(limits, line);
    heap_remove(&limits->times, &line->by_time);
    index_remove(&limits->keys, &line->by_key);
    list_unlink(&line->all_link);
    free(line);
}

/* The line that has been idle for the longest time may be forgotten: its key may then begin one
 * burst too early. */
static void become_idle(struct limits *limits, struct limit_line *line)
{
    line->idle = true;
    limits->n_idle++;
    list_push_back(&limits->idle, &line->link);
    look_at(limits, line, line->level.empty_at);
    if (limits->n_idle > LIMIT_IDLE_MAX)
        forget(limits, list_entry(list_first(&limits->idle), struct limit_line, link));
}

static void end_holding(struct limit_line *line)
{
    if (!line->held || line->held->n_jobs > 0)
        return;
    free(line->held);
    line->held = NULL;
    list_unlink(&line->link);
}

/* Returns the next job of the line to the queue, in front of the others of its priority. */
static void return_next(struct limits *limits, struct limit_line *line)
{
    struct job *job = queue_first(line->held);

    queue_remove(line->held, job);
    limits->n_aside--;
    limits->aside_since = loop_now(limits->loop);
    end_holding(line);
    job->in_line = false;
    job->returned = true;
    line->returned = true;
    queue_push_front(&line->cell->queue, job);
    cell_wake(line->cell);
}

/* Called after each change of the line: it may be freed. */
static void review(struct limits *limits, struct limit_line *line)
{
    const unsigned cost = line->held ? job_cost(queue_first(line->held)) : 1;
    const enum limit_gate gate = gate_of(limits, line, cost);

    leave_idle(limits, line);
    if (line->held && !line->returned && gate == LIMIT_NONE)
        return_next(limits, line);
    else if (line->held && gate == LIMIT_RATE)
        look_at(limits, line, limit_room_at(&line->bounds, &line->level, cost));
    else if (line->held || line->returned || line->level.taken > 0)
        heap_remove(&limits->times, &line->by_time);
    else if (limit_has_rate(&line->bounds) && line->level.empty_at > limit_now(limits->loop))
        become_idle(limits, line);
    else
        forget(limits, line);
}

static void on_timer(struct timer *timer, usec_t now)
{
    struct limits *limits = list_entry(timer, struct limits, timer);

    (void)now;
    for (unsigned n = 0; n < LINES_PER_TURN; n++) {
        struct heap_node *node = heap_first(&limits->times);
        struct limit_line *line;

        if (!node || node->key > limit_now(limits->loop))
            break;
        line = list_entry(node, struct limit_line, by_time);
        heap_remove(&limits->times, node);
        update(limits, line);
        review(limits, line);
    }
    arm(limits);
}

static void on_review(struct loop_deferred *deferred)
{
    struct limits *limits = list_entry(deferred, struct limits, review);

    for (unsigned n = 0; n < LINES_PER_TURN; n++) {
        struct list *node = list_first(&limits->all);
        struct limit_line *line = node ? list_entry(node, struct limit_line, all_link) : NULL;

        if (!line || line->seen == limits->n_reviews)
            return;
        line->seen = limits->n_reviews;
        list_unlink(&line->all_link);
        list_push_back(&limits->all, &line->all_link);
        update(limits, line);
        review(limits, line);
    }
    loop_defer(limits->loop, deferred);
}

void limit_lines_review(struct limits *limits)
{
    limits->n_reviews++;
    loop_defer(limits->loop, &limits->review);
}

/* ---- the next job of a cell ---- */

/* Returns whether the line may hold one more job. The first one has its cell woken later. */
static bool begin_holding(struct limits *limits, struct cell *cell, struct limit_line *line,
                          const struct job *job)
{
    if (line->held)
        return !job->record || limits->n_aside < ASIDE_MAX;
    line->held = malloc(sizeof(*line->held));
    if (!line->held)
        return false;
    queue_init(line->held);
    leave_idle(limits, line);
    line->cell = cell;
    list_push_back(&cell->lines, &line->link);
    return true;
}

static enum limit_verdict set_aside(struct limits *limits, struct cell *cell,
                                    struct limit_line *line, struct job *job)
{
    if (!begin_holding(limits, cell, line, job))
        return LIMIT_STOPS;
    queue_remove(&cell->queue, job);
    if (job->returned)
        queue_push_front(line->held, job);
    else
        queue_push_back(line->held, job);
    if (limits->n_aside++ == 0)
        limits->aside_since = loop_now(limits->loop);
    line->returned = line->returned && !job->returned;
    job->returned = false;
    job->in_line = true;
    review(limits, line);
    return LIMIT_ASIDE;
}

/* Whether the bounds may hold the job though its key has no line. */
static bool needs_line(const struct limits *limits, const struct job *job)
{
    const struct config_bounds bounds = bounds_of(limits);

    return limits->by_key && job->key_size > 0 &&
           (limits->n_uncounted > 0 || unknown_empty_at(limits, &bounds) > limit_now(limits->loop));
}

enum limit_verdict limits_review_job(struct limits *limits, struct cell *cell, struct job *job)
{
    const bool needed = needs_line(limits, job);
    struct limit_line *line = needed ? make_line(limits, job) : take_line(limits, job);

    if (!line)
        return needed ? LIMIT_STOPS : LIMIT_PASSES;
    if ((!job->returned && (line->held || line->returned)) ||
        gate_of(limits, line, job_cost(job)) != LIMIT_NONE)
        return set_aside(limits, cell, line, job);
    return LIMIT_PASSES;
}

void limits_take_out(struct limits *limits, struct job *job)
{
    struct limit_line *line = take_line(limits, job);

    job->in_line = false;
    queue_remove(line->held, job);
    limits->n_aside--;
    end_holding(line);
    review(limits, line);
}

void limits_leave_queue(struct limits *limits, struct job *job)
{
    struct limit_line *line = job->returned ? take_line(limits, job) : NULL;

    job->returned = false;
    if (!line)
        return;
    line->returned = false;
    review(limits, line);
}

/* ---- what runs ---- */

int limit_lines_begin(struct limits *limits, struct job *job, bool counts)
{
    struct limit_line *line =
        limits->by_key && job->key_size > 0 ? make_line(limits, job) : take_line(limits, job);

    job->uncounted = !line && limits->by_key && job->key_size > 0;
    if (job->uncounted && counts)
        return -ENOMEM;
    limits->n_uncounted += job->uncounted;
    if (!line)
        return 0;
    limit_level_take(&line->bounds, &line->level, job_cost(job), counts, limit_now(limits->loop));
    line->returned = line->returned && !job->returned;
    job->returned = false;
    review(limits, line);
    return 0;
}

void limit_lines_end(struct limits *limits, struct job *job, bool counted)
{
    struct limit_line *line = job->uncounted ? NULL : take_line(limits, job);

    if (job->uncounted) {
        job->uncounted = false;
        limits->n_uncounted--;
        limit_lines_review(limits);
    }
    if (!line)
        return;
    limit_level_give(&line->bounds, &line->level, job_cost(job), !counted);
    review(limits, line);
}

void limit_lines_look(const struct limits *limits, const struct job *job, struct limit_line *ret)
{
    const struct limit_line *line = find_line(limits, job);

    *ret = (struct limit_line){.bounds = LIMIT_NO_BOUNDS};
    if (line) {
        ret->bounds = line->bounds;
        ret->level = line->level;
    } else if (job->key_size > 0) {
        ret->bounds = bounds_of(limits);
        ret->level.empty_at = unknown_empty_at(limits, &ret->bounds);
    }
    ret->level.taken += limits->n_uncounted;
}

/* ---- life ---- */

void limit_lines_init(struct limits *limits)
{
    list_init(&limits->all);
    list_init(&limits->idle);
    timer_init(&limits->timer, on_timer);
    loop_deferred_init(&limits->review, on_review);
}

void limit_lines_deinit(struct limits *limits)
{
    list_for_each_safe (node, &limits->all)
        forget(limits, list_entry(node, struct limit_line, all_link));
    timer_disarm(loop_timers(limits->loop), &limits->timer);
    loop_undefer(&limits->review);
    heap_deinit(&limits->times);
    index_deinit(&limits->keys);
}
