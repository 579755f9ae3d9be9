/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-limit.h"

#include "supervisor/group/cell/cell-limit-line.h"
#include "supervisor/group/cell/cell-private.h"
#include <errno.h>

/* ---- the turns of cells ---- */

void limits_begin_turn(struct cell *cell)
{
    struct limit_use *use = list_linked(&cell->limit_link) ? cell->limit_use : NULL;

    cell->limit_turn = NULL;
    if (!use)
        return;
    if (list_first(&use->limit->waiting) != &cell->limit_link) {
        cell->limit_cost = 0; /* its next job may be another one now, or none: see below */
        return;
    }
    cell->limit_turn = use;
    limit_leave(cell);
}

static void drop_turn(struct limits *limits, struct cell *cell)
{
    cell->limit_turn = NULL;
    for (size_t i = 0; i < limits->n_uses; i++)
        if (limits->uses[i].limit->claimant == cell)
            limits->uses[i].limit->claimant = NULL;
}

void limits_end_turn(struct limits *limits, struct cell *cell)
{
    if (!list_linked(&cell->limit_link))
        drop_turn(limits, cell);
    limits_pass_on(limits);
}

void limits_pass_on(struct limits *limits)
{
    for (size_t i = 0; i < limits->n_uses; i++)
        limit_pass_on(limits->uses[i].limit);
}

static struct limit_use *first_that_holds(struct limits *limits, unsigned cost)
{
    for (enum limit_gate gate = LIMIT_RATE; gate <= LIMIT_RUNNING; gate++)
        for (size_t i = 0; i < limits->n_uses; i++)
            if (limit_holds(limits->uses[i].limit, cost, gate))
                return &limits->uses[i];
    return NULL;
}

static struct limit_use *first_of_others(struct limits *limits, const struct cell *cell)
{
    for (size_t i = 0; i < limits->n_uses; i++)
        if (limit_is_others(limits->uses[i].limit, cell))
            return &limits->uses[i];
    return NULL;
}

bool limits_hold_cell(struct limits *limits, struct cell *cell, const struct job *job)
{
    struct limit_use *use;

    if (list_linked(&cell->limit_link)) {
        cell->limit_cost = job_cost(job);
        return true;
    }
    use = first_that_holds(limits, job_cost(job));
    if (!use)
        use = first_of_others(limits, cell);
    if (!use)
        return false;
    if (cell->limit_turn && cell->limit_turn != use)
        limit_claim(cell->limit_turn->limit, cell, use->limit);
    limit_wait(use, cell, job_cost(job), cell->limit_turn);
    return true;
}

/* ---- what runs ---- */

int limits_begin(struct limits *limits, struct job *job, bool counts)
{
    const int r = limit_lines_begin(limits, job, counts);

    if (r < 0)
        return r;
    for (size_t i = 0; i < limits->n_uses; i++)
        limit_take(&limits->uses[i], job_cost(job), counts);
    if (counts)
        drop_turn(limits, job->cell);
    job->limited = true;
    return 0;
}

void limits_end(struct limits *limits, struct job *job, bool counted)
{
    job->limited = false;
    for (size_t i = 0; i < limits->n_uses; i++)
        limit_give(&limits->uses[i], job_cost(job), !counted);
    limit_lines_end(limits, job, counted);
}

/* ---- what holds ---- */

static struct limit_hold hold_of(const struct limit *limit, const struct config_bounds *bounds,
                                 const struct limit_level *level, unsigned cost,
                                 enum limit_gate gate)
{
    const bool is_rate = gate == LIMIT_RATE;

    return (struct limit_hold){
        .gate = gate,
        .limit = limit,
        .until = is_rate ? limit_room_at(bounds, level, cost) / NSEC_PER_USEC + 1 : 0,
        .taken = level->taken,
        .units = bounds->running,
    };
}

static struct limit_hold hold_of_limit(const struct limit *limit, unsigned cost,
                                       enum limit_gate gate)
{
    return hold_of(limit, &limit->bounds, &limit->level, cost, gate);
}

struct limit_hold limits_of_group(const struct limits *limits)
{
    for (size_t i = 0; i < limits->n_uses; i++)
        if (limits->uses[i].n_cells > 0)
            for (enum limit_gate gate = LIMIT_RATE; gate <= LIMIT_RUNNING; gate++)
                if (limit_holds(limits->uses[i].limit, 1, gate))
                    return hold_of_limit(limits->uses[i].limit, 1, gate);
    return (struct limit_hold){.gate = LIMIT_NONE};
}

struct limit_hold limits_of_job(const struct limits *limits, const struct job *job)
{
    const unsigned cost = job_cost(job);
    struct limit_line line;

    limit_lines_look(limits, job, &line);
    for (enum limit_gate gate = LIMIT_RATE; gate <= LIMIT_RUNNING; gate++) {
        for (size_t i = 0; i < limits->n_uses; i++)
            if (limit_holds(limits->uses[i].limit, cost, gate))
                return hold_of_limit(limits->uses[i].limit, cost, gate);
        if (limit_level_holds(&line.bounds, &line.level, cost, gate, limit_now(limits->loop)))
            return hold_of(NULL, &line.bounds, &line.level, cost, gate);
    }
    return (struct limit_hold){.gate = LIMIT_NONE};
}

usec_t limits_held_aside(const struct limits *limits)
{
    return limits->n_aside > 0 ? usec_sub(loop_now(limits->loop), limits->aside_since) : 0;
}

/* ---- life ---- */

void limits_init(struct limits *limits, const char *name, struct loop *loop,
                 const struct job_counts *counts)
{
    *limits = (struct limits){.loop = loop, .counts = counts, .key_bounds = LIMIT_NO_BOUNDS};
    limit_init(&limits->own, name, loop);
    limit_lines_init(limits);
}

void limits_take_over(struct limits *limits)
{
    const uint64_t now = limit_now(limits->loop);

    limits->taken_over = now;
    for (size_t i = 0; i < limits->n_uses; i++) {
        struct limit *limit = limits->uses[i].limit;

        if (limit_has_rate(&limit->bounds))
            limit->level.empty_at = limit_full_at(&limit->bounds, now);
    }
}

static void drop_uses(struct limits *limits)
{
    for (size_t i = 0; i < limits->n_uses; i++) {
        struct limit_use *use = &limits->uses[i];

        list_unlink(&use->link);
        use->limit->level.taken -= use->taken;
    }
    limits->n_uses = 0;
}

void limits_add_use(struct limits *limits, struct limit *limit)
{
    struct limit_use *use = &limits->uses[limits->n_uses];

    for (size_t i = 0; i < limits->n_uses; i++)
        if (limits->uses[i].limit == limit)
            return;
    limits->n_uses++;
    *use = (struct limit_use){.limit = limit, .limits = limits};
    list_push_back(&limit->uses, &use->link);
}

/* The part of the group's bounds that is for the whole group, or for each key. */
static struct config_bounds part_of(const struct config_group *config,
                                    const struct config_bounds *all, enum config_limit_per per)
{
    struct config_bounds bounds = LIMIT_NO_BOUNDS;

    bounds.burst = all->burst;
    if (config->rate_per == per)
        bounds.rate = all->rate;
    if (config->running_per == per)
        bounds.running = all->running;
    return bounds;
}

void limits_deinit(struct limits *limits)
{
    drop_uses(limits);
    limit_lines_deinit(limits);
    limit_deinit(&limits->own);
}

void limits_change(struct limits *limits, const struct config_group *config,
                   const struct config_bounds *bounds)
{
    const struct config_bounds own = part_of(config, bounds, CONFIG_LIMIT_PER_GROUP);

    limits->config = config;
    drop_uses(limits);
    if (limit_has_bounds(&own))
        limits_add_use(limits, &limits->own);
    limit_set_bounds(&limits->own, &own);
    limits->key_bounds = part_of(config, bounds, CONFIG_LIMIT_PER_KEY);
    limits->by_key = limit_has_bounds(&limits->key_bounds);
    limits->n_changes++;
    limits->n_uncounted = 0;
}

void limits_end_change(struct limits *limits)
{
    limit_lines_review(limits);
    limits_pass_on(limits);
}
