/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-limit.h"

#include "supervisor/group/cell/cell-limit-key.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/limit-table.h"

/* ---- the turns of cells ---- */

/* Returns NULL if `limit` is that of a key, or NULL. */
static struct limit_use *use_of(struct limits *limits, const struct limit *limit)
{
    for (size_t i = 0; i < limits->n_uses; i++)
        if (limits->uses[i].limit == limit)
            return &limits->uses[i];
    return NULL;
}

static void leave(struct limits *limits, struct cell *cell)
{
    struct limit_use *use = use_of(limits, cell->limit_waiter.at);

    if (use) {
        use->n_cells--;
        limit_refund(&cell->limit_waiter, &use->tag);
    }
    limit_leave(&cell->limit_waiter);
}

void limits_leave(struct limits *limits, struct cell *cell)
{
    if (cell->limit_waiter.at)
        leave(limits, cell);
    for (size_t i = 0; i < limits->n_uses; i++)
        if (limits->uses[i].limit->claimant == &cell->limit_waiter)
            limit_unclaim(limits->uses[i].limit);
}

void limits_end_turn(struct limits *limits, struct cell *cell)
{
    if (!cell->limit_stops)
        limits_leave(limits, cell);
    cell->limit_stops = false;
}

/* Returns the first limit that holds the cell. Each gate is asked for all limits before the next
 * gate; the lines of other waiters come last. */
static struct limit_use *first_that_holds(struct limits *limits, const struct cell *cell,
                                          unsigned cost)
{
    size_t i = 0;

    while (i < limits->n_uses && limit_lets(limits->uses[i].limit, &cell->limit_waiter, cost))
        i++;
    if (i == limits->n_uses)
        return NULL;
    for (enum limit_gate gate = LIMIT_RATE; gate <= LIMIT_RUNNING; gate++)
        for (size_t j = 0; j < limits->n_uses; j++)
            if (limit_holds(limits->uses[j].limit, cost, gate))
                return &limits->uses[j];
    return &limits->uses[i];
}

/* Whether a limit of the whole group holds the cell, whose next job needs `cost` units. The cell
 * waits in one line, and stays in it as long as that limit holds it. */
static bool holds_cell(struct limits *limits, struct cell *cell, unsigned cost)
{
    struct limit_waiter *waiter = &cell->limit_waiter;
    struct limit_use *at = use_of(limits, waiter->at), *use;

    if (at && !limit_lets(at->limit, waiter, cost)) {
        limit_wait(at->limit, waiter, cost, &at->tag, false);
        return true;
    }
    use = first_that_holds(limits, cell, cost);
    if (!use)
        return false;
    if (at)
        limit_claim(at->limit, waiter, use->limit);
    leave(limits, cell);
    use->n_cells++;
    limit_wait(use->limit, waiter, cost, &use->tag, at != NULL);
    return true;
}

enum limit_verdict limits_review(struct limits *limits, struct cell *cell, struct job *job)
{
    enum limit_verdict verdict = LIMIT_STOPS;

    if (limits->known != LIMITS_KNOWN)
        return LIMIT_STOPS; /* limits_end_change() follows */
    if (!holds_cell(limits, cell, job_cost(job)))
        verdict = limit_keys_exist(limits) ? limit_keys_review(limits, cell, job) : LIMIT_PASSES;
    cell->limit_stops = verdict == LIMIT_STOPS;
    return verdict;
}

/* ---- what runs ---- */

int limits_begin(struct limits *limits, struct job *job, bool counts)
{
    const int r = limit_keys_exist(limits) ? limit_keys_begin(limits, job, counts) : 0;

    if (r < 0)
        return r;
    for (size_t i = 0; i < limits->n_uses; i++)
        limit_take(limits->uses[i].limit, job_cost(job), counts);
    if (counts)
        limits_leave(limits, job->cell);
    return 0;
}

void limits_end(struct limits *limits, struct job *job, bool counted)
{
    for (size_t i = 0; i < limits->n_uses; i++)
        limit_give(limits->uses[i].limit, job_cost(job), !counted);
    if (job->limited)
        limit_keys_end(limits, job, counted);
}

/* ---- what holds ---- */

static struct limit_hold hold_of(const struct limit *limit, unsigned cost, enum limit_gate gate)
{
    return (struct limit_hold){
        .gate = gate,
        .limit = limit,
        .until = gate == LIMIT_RATE ? limit_room_at(limit, cost) : 0,
        .taken = limit->taken,
        .units = limit->bounds.running,
    };
}

struct limit_hold limits_of_group(const struct limits *limits)
{
    if (limits->known != LIMITS_KNOWN)
        return (struct limit_hold){.gate = LIMIT_UNREAD};
    for (size_t i = 0; i < limits->n_uses; i++)
        if (limits->uses[i].n_cells > 0)
            for (enum limit_gate gate = LIMIT_RATE; gate <= LIMIT_RUNNING; gate++)
                if (limit_holds(limits->uses[i].limit, 1, gate))
                    return hold_of(limits->uses[i].limit, 1, gate);
    return (struct limit_hold){.gate = LIMIT_NONE};
}

struct limit_hold limits_of_job(const struct limits *limits, const struct job *job)
{
    const struct limit key = limit_keys_look(limits, job->key, job->key_size);
    struct limit_hold hold = {.gate = LIMIT_NONE};

    if (limits->known != LIMITS_KNOWN)
        return (struct limit_hold){.gate = LIMIT_UNREAD};
    for (enum limit_gate gate = LIMIT_RATE; gate <= LIMIT_RUNNING; gate++) {
        for (size_t i = 0; i < limits->n_uses; i++)
            if (limit_holds(limits->uses[i].limit, job_cost(job), gate))
                return hold_of(limits->uses[i].limit, job_cost(job), gate);
        if (limit_holds(&key, job_cost(job), gate)) {
            hold = hold_of(&key, job_cost(job), gate);
            hold.limit = NULL;
            return hold;
        }
    }
    return hold;
}

usec_t limits_held_aside(const struct limits *limits)
{
    return limits->n_aside > 0 ? usec_sub(loop_now(limits->loop), limits->aside_since) : 0;
}

/* ---- life ---- */

void limits_take_over(struct limits *limits)
{
    if (limits->taken_over == 0)
        limits->taken_over = limit_now(&limits->own);
    for (size_t i = 0; i < limits->n_uses; i++)
        limit_fill(limits->uses[i].limit, limits->taken_over);
}

static void note_ending(struct limits *limits, uint32_t change)
{
    for (size_t i = 0; i < limits->n_uses && change != 0; i++) {
        limits->uses[i].limit->n_ending += change;
        limit_review(limits->uses[i].limit);
    }
}

/* Gives back what the group has taken of the last one. */
static void drop_use(struct limits *limits)
{
    struct limit_use *use = &limits->uses[--limits->n_uses];
    struct limit *limit = use->limit;

    list_unlink(&use->link);
    limit->n_ending -= limits->n_ending;
    if (limit != &limits->own)
        limit_give(limit, (unsigned)limits->own.taken, false);
}

/* Each limit that the group uses counts all of its jobs that run. */
static void add_use(struct limits *limits, struct limit *limit)
{
    struct limit_use *use = &limits->uses[limits->n_uses];

    if (use_of(limits, limit))
        return;
    limits->n_uses++;
    *use = (struct limit_use){.limit = limit, .limits = limits};
    limit->n_ending += limits->n_ending;
    if (limit != &limits->own)
        limit->taken += limits->own.taken;
    list_push_back(&limit->uses, &use->link);
}

bool limits_use_others(const struct limits *limits, const struct config_group *config)
{
    size_t n = 1;

    for (char **name = config->uses.strings; name && *name; name++) {
        const struct limit *limit = &limit_table_find(limits->table, *name)->limit;
        size_t i = 1;

        while (i < limits->n_uses && limits->uses[i].limit != limit)
            i++;
        if (i > n || i == limits->n_uses)
            return true;
        n += i == n; /* else it is named twice */
    }
    return n != limits->n_uses;
}

void limits_init(struct limits *limits, const char *name, const struct limit_table *table,
                 const struct job_counts *counts)
{
    *limits = (struct limits){.loop = table->loop,
                              .table = table,
                              .counts = counts,
                              .bounds = LIMIT_NO_BOUNDS,
                              .key_bounds = LIMIT_NO_BOUNDS};
    limit_keys_init(limits);
    limit_init(&limits->own, name, table->loop);
    add_use(limits, &limits->own);
}

void limits_note_ending(struct limits *limits, int change)
{
    limits->n_ending += (uint32_t)change;
    note_ending(limits, (uint32_t)change);
}

void limits_deinit(struct limits *limits)
{
    while (limits->n_uses > 0)
        drop_use(limits);
    limit_keys_deinit(limits);
    limit_deinit(&limits->own);
}

void limits_change(struct limits *limits, const struct config_group *config)
{
    const bool others = limits_use_others(limits, config);
    struct config_bounds own;

    limits->config = config;
    limits->bounds = limit_table_bounds(limits->table, config->name, &config->limits);
    own = limit_part(config, &limits->bounds, CONFIG_LIMIT_PER_GROUP);
    limits->key_bounds = limit_part(config, &limits->bounds, CONFIG_LIMIT_PER_KEY);
    limits->keys_set = limit_table_has_keys(limits->table, config->name);
    limits->by_key = limit_has_bounds(&limits->key_bounds) || limits->keys_set;
    limit_set_bounds(&limits->own, &own);
    while (limits->n_uses > 1 && others)
        drop_use(limits);
    for (char **name = config->uses.strings; name && *name; name++)
        add_use(limits, &limit_table_find(limits->table, *name)->limit);
    limit_keys_change(limits);
}

bool limits_lack_keys(const struct limits *limits)
{
    return limits->by_key && limits->n_counted < limits->counts->n[JOBS_RUNNING];
}

bool limits_change_keys(struct limits *limits)
{
    if (!limits->by_key)
        return false;
    limits->keys_set = limit_table_has_keys(limits->table, limits->config->name);
    limit_keys_change(limits);
    return true;
}

void limits_end_change(struct limits *limits)
{
    for (size_t i = 0; i < limits->n_uses; i++)
        limit_review(limits->uses[i].limit);
}

bool limits_are_set(const struct limits *limits)
{
    if (limits->known != LIMITS_KNOWN || limits->keys_set ||
        limit_table_setting(limits->table, limits->own.name))
        return true;
    for (size_t i = 0; i < limits->n_uses; i++)
        if (limit_table_setting(limits->table, limits->uses[i].limit->name))
            return true;
    return false;
}
