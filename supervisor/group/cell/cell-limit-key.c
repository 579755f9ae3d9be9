/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-limit-key.h"

#include "shared/base/fault.h"
#include "shared/base/hash.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/limit-table.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Keys that are looked at in one turn after a change. */
#define KEYS_PER_TURN 256u

/* The cost of a job that needs an empty bucket. */
#define WHOLE_BURST UINT_MAX

/* ---- keys ---- */

/* Returns the bounds of a key. While a job is not counted, for lack of memory, it is not known how
 * many jobs of a key run: if that number has a bound, no job of the key begins. */
static struct config_bounds bounds_of(const struct limits *limits, const char *key, size_t size)
{
    struct config_bounds bounds = limits->key_bounds;

    if (limits->keys_set)
        bounds = limit_table_key_bounds(limits->table, limits->config, &bounds, key, size);
    if (limits->n_uncounted > 0 && bounds.running != CONFIG_UNSET)
        bounds.running = 0;
    return bounds;
}

static void update(struct limit_key *key)
{
    const struct limits *limits = key->limits;
    const struct config_bounds bounds = bounds_of(limits, key->key, key->key_size);

    key->change = limits->n_changes;
    limit_set_bounds(&key->limit, &bounds);
}

struct limit_key *limit_keys_find(const struct limits *limits, const char *text, size_t size)
{
    struct index_entry *entry = size > 0 && limits->keys.n_entries > 0
                                    ? index_find(&limits->keys, hash_bytes(text, size))
                                    : NULL;

    for (; entry; entry = index_find_next(entry)) {
        struct limit_key *key = list_entry(entry, struct limit_key, by_key);

        if (key->key_size == size && memcmp(key->key, text, size) == 0) {
            if (key->change != limits->n_changes)
                update(key);
            return key;
        }
    }
    return NULL;
}

static struct limit_key *find(const struct limits *limits, const struct job *job)
{
    return limit_keys_find(limits, job->key, job->key_size);
}

static void on_turn(struct limit_waiter *waiter);

static struct limit_key *make(struct limits *limits, const struct job *job)
{
    struct limit_key *key =
        fault_inject("limit") < 0 ? NULL : calloc(1, sizeof(*key) + job->key_size);

    if (!key)
        return NULL;
    limit_init(&key->limit, limits->own.name, limits->loop);
    key->limits = limits;
    key->waiter.turn = on_turn;
    list_init(&key->waiter.link);
    list_init(&key->link);
    list_init(&key->all_link);
    list_push_back(&limits->all, &key->all_link);
    key->key_size = job->key_size;
    memcpy(key->key, job->key, job->key_size);
    index_add(&limits->keys, &key->by_key, hash_bytes(job->key, job->key_size));
    update(key);
    if (limits->taken_over > 0)
        limit_fill(&key->limit, limits->taken_over);
    return key;
}

static struct limit_key *find_or_make(struct limits *limits, const struct job *job)
{
    struct limit_key *key = find(limits, job);

    return key ? key : make(limits, job);
}

static void leave_idle(struct limit_key *key)
{
    if (!key->idle)
        return;
    key->idle = false;
    key->limits->n_idle--;
    list_unlink(&key->link);
}

static void forget(struct limit_key *key)
{
    leave_idle(key);
    limit_leave(&key->waiter);
    list_until_empty (waiter, &key->limit.line, struct limit_waiter, link) {
        limit_leave(waiter);
        waiter->turn(waiter); /* its cell looks again */
    }
    index_remove(&key->limits->keys, &key->by_key);
    list_unlink(&key->all_link);
    limit_deinit(&key->limit);
    free(key);
}

/* The key that has been idle for the longest time may be forgotten: it may then begin one burst too
 * early. */
static void become_idle(struct limit_key *key)
{
    struct limits *limits = key->limits;

    if (limits->n_idle >= LIMIT_IDLE_MAX)
        forget(list_first_entry(&limits->idle, struct limit_key, link));
    key->idle = true;
    limits->n_idle++;
    list_push_back(&limits->idle, &key->link);
    limit_wait(&key->limit, &key->waiter, WHOLE_BURST, NULL, false);
}

/* Called after each change of the key: it may be freed. */
static void review(struct limit_key *key)
{
    leave_idle(key);
    if (key->returned || (!key->held && key->limit.taken > 0))
        limit_leave(&key->waiter); /* until that job leaves the queue, or ends */
    else if (key->held)
        limit_wait(&key->limit, &key->waiter, job_cost(queue_first(key->held)), NULL, false);
    else
        become_idle(key);
}

static void end_holding(struct limit_key *key)
{
    if (!key->held || key->held->n_jobs > 0)
        return;
    free(key->held);
    key->held = NULL;
    list_unlink(&key->link);
}

/* Returns the next job to the queue, in front of the others of its priority. */
static void return_next(struct limit_key *key)
{
    struct limits *limits = key->limits;
    struct job *job = queue_first(key->held);

    queue_remove(key->held, job);
    limits->n_aside--;
    limits->aside_since = loop_now(limits->loop);
    end_holding(key);
    job->in_line = false;
    job->returned = true;
    key->returned = true;
    limit_leave(&key->waiter);
    queue_push_front(&key->cell->queue, job);
    cell_wake(key->cell);
}

static void on_turn(struct limit_waiter *waiter)
{
    struct limit_key *key = list_entry(waiter, struct limit_key, waiter);

    if (key->held)
        return_next(key);
    else
        forget(key);
}

static void on_changed(struct loop_deferred *deferred)
{
    struct limits *limits = list_entry(deferred, struct limits, look);
    unsigned n = 0;

    list_until_empty (key, &limits->changed, struct limit_key, all_link) {
        if (n++ == KEYS_PER_TURN) {
            loop_defer(limits->loop, deferred);
            return;
        }
        list_unlink(&key->all_link);
        list_push_back(&limits->all, &key->all_link);
        update(key);
        review(key);
    }
}

void limit_keys_change(struct limits *limits)
{
    limits->n_changes++;
    list_append(&limits->changed, &limits->all);
    loop_defer(limits->loop, &limits->look);
}

static void count_uncounted(struct limits *limits, struct job *job, bool uncounted)
{
    if (job->uncounted == uncounted)
        return;
    job->uncounted = uncounted;
    limits->n_uncounted += uncounted ? 1u : -1u;
    limit_keys_change(limits);
}

/* ---- the next job of a cell ---- */

/* Returns whether the key may hold one more job. */
static bool begin_holding(struct limit_key *key, struct cell *cell)
{
    if (key->held)
        return true;
    key->held = fault_inject("limit") < 0 ? NULL : malloc(sizeof(*key->held));
    if (!key->held)
        return false;
    queue_init(key->held);
    leave_idle(key);
    key->cell = cell;
    list_push_back(&cell->lines, &key->link);
    return true;
}

static enum limit_verdict set_aside(struct limit_key *key, struct cell *cell, struct job *job)
{
    struct limits *limits = key->limits;

    /* Durable jobs that wait on disk are read to be set aside, and then stay in memory. */
    if (job->record && !cell_may_grow(cell, 0)) {
        limit_wait(&key->limit, &cell->limit_waiter, job_cost(job), NULL, false);
        return LIMIT_STOPS;
    }
    if (!begin_holding(key, cell))
        return LIMIT_LATER;
    queue_remove(&cell->queue, job);
    if (job->returned)
        queue_push_front(key->held, job);
    else
        queue_push_back(key->held, job);
    if (limits->n_aside++ == 0)
        limits->aside_since = loop_now(limits->loop);
    key->returned = key->returned && !job->returned;
    job->returned = false;
    job->in_line = true;
    review(key);
    return LIMIT_ASIDE;
}

static bool holds(const struct limit *limit, const struct job *job)
{
    return limit_holds(limit, job_cost(job), LIMIT_RATE) ||
           limit_holds(limit, job_cost(job), LIMIT_RUNNING);
}

enum limit_verdict limit_keys_review(struct limits *limits, struct cell *cell, struct job *job)
{
    struct limit_key *key = find(limits, job);

    if (!key) {
        const struct limit limit = limit_keys_look(limits, job->key, job->key_size);

        if (!holds(&limit, job))
            return LIMIT_PASSES;
        key = make(limits, job);
        return key ? set_aside(key, cell, job) : LIMIT_LATER;
    }
    if ((!job->returned && (key->held || key->returned)) || holds(&key->limit, job))
        return set_aside(key, cell, job);
    return LIMIT_PASSES;
}

void limits_take_out(struct limits *limits, struct job *job)
{
    struct limit_key *key = find(limits, job);

    job->in_line = false;
    queue_remove(key->held, job);
    limits->n_aside--;
    end_holding(key);
    review(key);
}

void limits_leave_queue(struct limits *limits, struct job *job)
{
    struct limit_key *key = job->returned ? find(limits, job) : NULL;

    job->returned = false;
    if (!key)
        return;
    key->returned = false;
    review(key);
}

/* ---- what runs ---- */

int limit_keys_begin(struct limits *limits, struct job *job, bool counts)
{
    const bool limited = limits->by_key && job->key_size > 0;
    struct limit_key *key = limited ? find_or_make(limits, job) : find(limits, job);

    if (limited && !key && counts)
        return -ENOMEM;
    job->limited = limits->by_key || key;
    limits->n_counted += job->limited;
    count_uncounted(limits, job, limited && !key);
    if (!key)
        return 0;
    limit_take(&key->limit, job_cost(job), counts);
    key->returned = key->returned && !job->returned;
    job->returned = false;
    review(key);
    return 0;
}

void limit_keys_end(struct limits *limits, struct job *job, bool counted)
{
    struct limit_key *key = job->uncounted ? NULL : find(limits, job);

    job->limited = false;
    limits->n_counted--;
    count_uncounted(limits, job, false);
    if (!key)
        return;
    limit_give(&key->limit, job_cost(job), !counted);
    review(key);
}

struct limit limit_keys_look(const struct limits *limits, const char *text, size_t size)
{
    const struct limit_key *key = limit_keys_find(limits, text, size);
    struct limit limit = {
        .name = limits->own.name, .loop = limits->loop, .bounds = LIMIT_NO_BOUNDS};

    if (key)
        return key->limit;
    if (limits->by_key && size > 0) {
        const struct config_bounds bounds = bounds_of(limits, text, size);

        limit_set_bounds(&limit, &bounds);
        if (limits->taken_over > 0)
            limit_fill(&limit, limits->taken_over);
    }
    return limit;
}

/* ---- life ---- */

void limit_keys_init(struct limits *limits)
{
    list_init(&limits->all);
    list_init(&limits->changed);
    list_init(&limits->idle);
    loop_deferred_init(&limits->look, on_changed);
}

void limit_keys_deinit(struct limits *limits)
{
    list_append(&limits->all, &limits->changed);
    list_for_each_entry_safe (key, &limits->all, struct limit_key, all_link)
        forget(key);
    loop_undefer(&limits->look);
    index_deinit(&limits->keys);
}
