/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-limit.h"

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

/* ---- rates ---- */

static uint64_t nsec(usec_t usec)
{
    return usec > UINT64_MAX / NSEC_PER_USEC ? UINT64_MAX : usec * NSEC_PER_USEC;
}

static uint64_t now_of(const struct limits *limits)
{
    return nsec(loop_now(limits->loop));
}

/* The time in which one job leaks out of a bucket. */
static uint64_t interval_of(const struct config_group *config)
{
    return nsec(config->rate.period) / config->rate.n;
}

/* When the next job may begin: the bucket has room for one more. */
static uint64_t room_at(const struct config_group *config, const struct limit_line *line)
{
    const uint64_t rest = (config->burst - 1) * interval_of(config);

    return line->empty_at > rest ? line->empty_at - rest : 0;
}

static void fill(const struct limits *limits, struct limit_line *line)
{
    const uint64_t now = now_of(limits);

    line->empty_at = (line->empty_at > now ? line->empty_at : now) + interval_of(limits->config);
}

static void unfill(const struct limits *limits, struct limit_line *line)
{
    const uint64_t interval = interval_of(limits->config);

    line->empty_at -= line->empty_at > interval ? interval : line->empty_at;
}

/* ---- gates ---- */

static bool has_rate(const struct limits *limits, enum config_limit_per per)
{
    return limits->config->rate.n > 0 && limits->config->rate_per == per;
}

static bool has_running(const struct limits *limits, enum config_limit_per per)
{
    return limits->config->running != CONFIG_UNSET && limits->config->running_per == per;
}

static bool has_lines(const struct limits *limits)
{
    return has_rate(limits, CONFIG_LIMIT_PER_KEY) || has_running(limits, CONFIG_LIMIT_PER_KEY);
}

static enum limit_gate gate_of(const struct limits *limits, const struct limit_line *line,
                               enum config_limit_per per, uint64_t n_running)
{
    if (has_rate(limits, per) && now_of(limits) < room_at(limits->config, line))
        return LIMIT_RATE;
    return has_running(limits, per) && n_running >= limits->config->running ? LIMIT_RUNNING
                                                                            : LIMIT_NONE;
}

static enum limit_gate gate_of_group(const struct limits *limits)
{
    return gate_of(limits, &limits->group, CONFIG_LIMIT_PER_GROUP, *limits->n_running);
}

static enum limit_gate gate_of_line(const struct limits *limits, const struct limit_line *line)
{
    return gate_of(limits, line, CONFIG_LIMIT_PER_KEY, line->n_running);
}

/* ---- lines ---- */

static struct limit_line *find_line(const struct limits *limits, const struct job *job)
{
    struct index_entry *entry = has_lines(limits) && job->key_size > 0
                                    ? index_find(&limits->keys, hash_bytes(job->key, job->key_size))
                                    : NULL;

    for (; entry; entry = index_find_next(entry)) {
        struct limit_line *line = list_entry(entry, struct limit_line, by_key);

        if (line->key_size == job->key_size && memcmp(line->key, job->key, job->key_size) == 0)
            return line;
    }
    return NULL;
}

static struct limit_line *make_line(struct limits *limits, const struct job *job)
{
    struct limit_line *line = find_line(limits, job);

    if (line)
        return line;
    line = calloc(1, sizeof(*line) + job->key_size);
    if (!line)
        return NULL;
    if (heap_reserve(&limits->times, limits->keys.n_entries + 2) < 0) { /* with the group's */
        free(line);
        return NULL;
    }
    list_init(&line->link);
    list_init(&line->all_link);
    list_push_back(&limits->all, &line->all_link);
    line->empty_at = limits->full_at;
    line->key_size = job->key_size;
    line->key = (char *)(line + 1);
    memcpy(line->key, job->key, job->key_size);
    index_add(&limits->keys, &line->by_key, hash_bytes(job->key, job->key_size));
    return line;
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
    look_at(limits, line, line->empty_at);
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
    const enum limit_gate gate = gate_of_line(limits, line);

    leave_idle(limits, line);
    if (line->held && !line->returned && gate == LIMIT_NONE)
        return_next(limits, line);
    else if (line->held && gate == LIMIT_RATE)
        look_at(limits, line, room_at(limits->config, line));
    else if (line->held || line->returned || line->n_running > 0)
        heap_remove(&limits->times, &line->by_time);
    else if (has_rate(limits, CONFIG_LIMIT_PER_KEY) && line->empty_at > now_of(limits))
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

        if (!node || node->key > now_of(limits))
            break;
        line = list_entry(node, struct limit_line, by_time);
        heap_remove(&limits->times, node);
        if (line == &limits->group)
            limits_pass_on(limits);
        else
            review(limits, line);
    }
    arm(limits);
}

/* ---- the next job of a cell ---- */

static enum limit_verdict set_aside(struct limits *limits, struct cell *cell,
                                    struct limit_line *line, struct job *job)
{
    if (!line->held) {
        line->held =
            job->record && limits->n_aside >= ASIDE_MAX ? NULL : malloc(sizeof(*line->held));
        if (!line->held)
            return LIMIT_STOPS;
        queue_init(line->held);
        leave_idle(limits, line);
        line->cell = cell;
        list_push_back(&cell->lines, &line->link);
    } else if (job->record && limits->n_aside >= ASIDE_MAX) {
        return LIMIT_STOPS;
    }
    queue_remove(&cell->queue, job);
    if (job->returned)
        queue_push_front(line->held, job);
    else
        queue_push_back(line->held, job);
    limits->n_aside++;
    line->returned = line->returned && !job->returned;
    job->returned = false;
    job->in_line = true;
    review(limits, line);
    return LIMIT_ASIDE;
}

/* Returns the line of the job's key; NULL = there is none, and its bucket is not known to be full.
 */
static struct limit_line *line_of(struct limits *limits, const struct job *job)
{
    struct limit_line *line = find_line(limits, job);
    const bool is_full = !line && job->key_size > 0 && has_rate(limits, CONFIG_LIMIT_PER_KEY) &&
                         limits->full_at > now_of(limits);

    return is_full ? make_line(limits, job) : line;
}

enum limit_verdict limits_review_job(struct limits *limits, struct cell *cell, struct job *job)
{
    struct limit_line *line = line_of(limits, job);
    const bool others_first = line && !job->returned && (line->held || line->returned);

    return line && (others_first || gate_of_line(limits, line) != LIMIT_NONE)
               ? set_aside(limits, cell, line, job)
               : LIMIT_PASSES;
}

void limits_take_out(struct limits *limits, struct job *job)
{
    struct limit_line *line = find_line(limits, job);

    job->in_line = false;
    queue_remove(line->held, job);
    limits->n_aside--;
    end_holding(line);
    review(limits, line);
}

void limits_leave_queue(struct limits *limits, struct job *job)
{
    struct limit_line *line = job->returned ? find_line(limits, job) : NULL;

    job->returned = false;
    if (!line)
        return;
    line->returned = false;
    review(limits, line);
}

/* ---- the turns of cells ---- */

void limits_begin_turn(struct limits *limits, struct cell *cell)
{
    cell->has_turn =
        list_empty(&limits->blocked) || list_first(&limits->blocked) == &cell->limit_link;
    list_unlink(&cell->limit_link);
}

bool limits_hold_cell(struct limits *limits, struct cell *cell)
{
    const enum limit_gate gate = gate_of_group(limits);

    if (cell->has_turn && gate == LIMIT_NONE) {
        cell->has_turn = list_empty(&limits->blocked);
        return false;
    }
    list_push_back(&limits->blocked, &cell->limit_link);
    return true;
}

void limits_pass_on(struct limits *limits)
{
    struct list *node = list_first(&limits->blocked);

    const enum limit_gate gate = node ? gate_of_group(limits) : LIMIT_NONE;

    if (gate == LIMIT_RATE)
        look_at(limits, &limits->group, room_at(limits->config, &limits->group));
    else if (node && gate == LIMIT_NONE)
        cell_wake(list_entry(node, struct cell, limit_link));
}

/* ---- what runs ---- */

int limits_begin(struct limits *limits, struct job *job, bool counts)
{
    struct limit_line *line = NULL;

    if (has_lines(limits) && job->key_size > 0) {
        line = make_line(limits, job);
        if (!line)
            return -ENOMEM;
        line->n_running++;
        if (counts && has_rate(limits, CONFIG_LIMIT_PER_KEY))
            fill(limits, line);
        line->returned = line->returned && !job->returned;
        job->returned = false;
        review(limits, line);
    }
    if (counts && has_rate(limits, CONFIG_LIMIT_PER_GROUP))
        fill(limits, &limits->group);
    return 0;
}

void limits_end(struct limits *limits, struct job *job, bool counted)
{
    struct limit_line *line = find_line(limits, job);

    if (!counted && has_rate(limits, CONFIG_LIMIT_PER_GROUP))
        unfill(limits, &limits->group);
    if (line) {
        line->n_running -= line->n_running > 0;
        if (!counted && has_rate(limits, CONFIG_LIMIT_PER_KEY))
            unfill(limits, line);
        review(limits, line);
    }
    limits_pass_on(limits);
}

/* Monotonic, when the rate has room again. */
static usec_t end_of(const struct limits *limits, enum limit_gate gate,
                     const struct limit_line *line)
{
    return gate == LIMIT_RATE ? room_at(limits->config, line) / NSEC_PER_USEC + 1 : 0;
}

enum limit_gate limits_of_group(const struct limits *limits, usec_t *ret_at)
{
    const enum limit_gate gate = list_empty(&limits->blocked) ? LIMIT_NONE : gate_of_group(limits);

    *ret_at = end_of(limits, gate, &limits->group);
    return gate;
}

enum limit_gate limits_of_job(const struct limits *limits, const struct job *job, usec_t *ret_at,
                              enum config_limit_per *ret_per)
{
    const struct limit_line unknown = {.empty_at = limits->full_at};
    const struct limit_line *line = &limits->group, *own = find_line(limits, job);
    enum limit_gate gate = gate_of_group(limits), gate_of_own;

    *ret_per = CONFIG_LIMIT_PER_GROUP;
    if (!own)
        own = &unknown;
    gate_of_own = job->key_size > 0 ? gate_of_line(limits, own) : LIMIT_NONE;
    if (gate_of_own != LIMIT_NONE && gate != LIMIT_RATE) {
        gate = gate_of_own;
        line = own;
        *ret_per = CONFIG_LIMIT_PER_KEY;
    }
    *ret_at = end_of(limits, gate, line);
    return gate;
}

/* ---- life ---- */

void limits_init(struct limits *limits, const struct config_group *config, struct loop *loop,
                 const uint64_t *n_running)
{
    *limits = (struct limits){.config = config, .loop = loop, .n_running = n_running};
    list_init(&limits->blocked);
    list_init(&limits->all);
    list_init(&limits->idle);
    timer_init(&limits->timer, on_timer);
    (void)heap_reserve(&limits->times, 1); /* for the group's line */
}

void limits_take_over(struct limits *limits)
{
    const struct config_group *config = limits->config;

    if (config->rate.n == 0)
        return;
    limits->full_at = now_of(limits) + config->burst * interval_of(config);
    limits->group.empty_at = limits->full_at;
}

void limits_deinit(struct limits *limits)
{
    list_for_each_safe (node, &limits->all)
        forget(limits, list_entry(node, struct limit_line, all_link));
    timer_disarm(loop_timers(limits->loop), &limits->timer);
    heap_deinit(&limits->times);
    index_deinit(&limits->keys);
}

/* Returns all jobs of the line to the queue, in front of others. */
static void return_all(struct limits *limits, struct limit_line *line)
{
    struct job *job;

    while (line->held && (job = queue_last(line->held))) {
        queue_remove(line->held, job);
        limits->n_aside--;
        job->in_line = false;
        queue_push_front(&line->cell->queue, job);
        cell_wake(line->cell);
        end_holding(line);
    }
    line->returned = false;
}

void limits_change(struct limits *limits, const struct config_group *config)
{
    list_for_each (node, &limits->all) {
        struct limit_line *line = list_entry(node, struct limit_line, all_link);

        return_all(limits, line);
        line->n_running = 0;
    }
    limits->config = config;
}

void limits_end_change(struct limits *limits)
{
    /* A review may free any line. */
    for (uint32_t n = limits->keys.n_entries; n > 0 && !list_empty(&limits->all); n--) {
        struct list *node = list_first(&limits->all);

        list_unlink(node);
        list_push_back(&limits->all, node);
        review(limits, list_entry(node, struct limit_line, all_link));
    }
    limits_pass_on(limits);
}
