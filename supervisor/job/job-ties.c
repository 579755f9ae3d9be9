/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-ties.h"

#include "shared/base/fault.h"
#include "shared/base/hash.h"
#include "supervisor/job/job-ties-private.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How long edges are decided in one turn, and after how many the clock is read. */
#define TURN_BUDGET  (4 * USEC_PER_MSEC)
#define CHECKED_EACH 64u

#define edge_of(node) list_entry(node, struct job_edge, of_parent)

static const char *const CONDITIONS[_TIE_N_CONDITIONS] = {
    [TIE_SUCCESS] = "success", [TIE_FAILURE] = "failure", [TIE_END] = "end"};

const char *tie_condition_to_string(enum tie_condition condition)
{
    return CONDITIONS[condition];
}

const char *ties_format_id(const struct job_ties *ties, char *text)
{
    if (ties->job)
        return job_format_id(ties->job, text);
    return ties->id ? ties->id : "?";
}

/* ---- ties and edges ---- */

static uint64_t hash_of(struct tie_key key)
{
    return hash_mix(key.value) ^ key.durable;
}

struct job_ties *ties_find(const struct job_table *table, struct tie_key key)
{
    struct index_entry *entry = index_find(&table->ties.by_key, hash_of(key));

    for (; entry && key.value != 0; entry = index_find_next(entry)) {
        struct job_ties *ties = list_entry(entry, struct job_ties, by_key);

        if (ties->key.value == key.value && ties->key.durable == key.durable)
            return ties;
    }
    return NULL;
}

struct job_ties *ties_new(struct job_table *table, struct tie_key key, const char *id)
{
    struct job_ties *ties = fault_inject("job-ties") < 0 ? NULL : calloc(1, sizeof(*ties));

    if (!ties)
        return NULL;
    ties->key = key;
    ties->id = id ? strdup(id) : NULL;
    list_init(&ties->due);
    list_init(&ties->children);
    list_init(&ties->decided);
    list_init(&ties->in_batch);
    list_init(&ties->members);
    list_push_back(&table->ties.all, &ties->link);
    if (key.value != 0)
        index_add(&table->ties.by_key, &ties->by_key, hash_of(key));
    return ties;
}

static void ties_free(struct job_table *table, struct job_ties *ties)
{
    if (ties->key.value != 0)
        index_remove(&table->ties.by_key, &ties->by_key);
    list_unlink(&ties->link);
    list_unlink(&ties->due);
    free(ties->id);
    free(ties->text);
    free(ties->edges);
    free(ties);
}

void ties_release(struct job_table *table, struct job_ties *ties)
{
    if (!ties->job && !ties->unclaimed && !ties->held && ties->n_edges == 0 && !ties->batch &&
        list_empty(&ties->children) && list_empty(&ties->decided) && list_empty(&ties->members))
        ties_free(table, ties);
}

/* Returns the ties of the job, which are made if there are none; NULL without memory. */
static struct job_ties *ties_of(struct job_table *table, struct job *job, struct tie_key key)
{
    struct job_ties *ties = job_own_ties(job);

    if (ties)
        return ties;
    if (job_make_rare(job) < 0)
        return NULL;
    ties = ties_new(table, key, NULL);
    if (!ties)
        return NULL;
    ties->job = job;
    ties->end = job_ended(job) ? (uint8_t)job->state : 0;
    job->rare->ties = ties;
    return ties;
}

/* Rough: an edge, its text, and a share of the ties. */
#define EDGE_BYTES 256u

void ties_link(struct job_ties *child, struct job_ties *parent, enum tie_condition condition)
{
    struct job_edge *edge = &child->edges[child->n_edges++];

    *edge = (struct job_edge){
        .parent = parent, .child = child, .condition = (uint8_t)condition, .counted = true};
    list_push_back(&parent->children, &edge->of_parent);
    parent->n_children++;
    child->n_undecided++;
}

void ties_join(struct job_ties *ties, struct job_ties *batch)
{
    ties->batch = batch;
    list_push_back(&batch->members, &ties->in_batch);
}

uint32_t ties_list_parents(const struct job_ties *ties, char *ret)
{
    char id[PROTOCOL_ID_TEXT], *at = ret;

    for (unsigned i = 0; i < ties->n_edges; i++) {
        const char *text = ties_format_id(ties->edges[i].parent, id);

        if (i > 0)
            *at++ = ',';
        at = mempcpy(at, text, strlen(text));
    }
    return (uint32_t)(at - ret);
}

/* ---- a new job ---- */

static struct job_ties *ties_of_parent(struct job_table *table, const struct tie_parent *parent)
{
    struct job_ties *ties =
        parent->job ? ties_of(table, parent->job, parent->key) : ties_find(table, parent->key);

    if (ties)
        return ties;
    ties = parent->job ? NULL : ties_new(table, parent->key, parent->id);
    if (ties)
        ties->end = parent->end;
    return ties;
}

int ties_add(struct job_table *table, struct job *job, struct tie_key key,
             const struct tie_parent *parents, size_t n, struct job *batch,
             struct tie_key batch_key)
{
    struct job_ties *ties = ties_of(table, job, key);
    struct job_ties *joined = batch ? ties_of(table, batch, batch_key) : NULL;

    if (!ties || (batch && !joined))
        return -ENOMEM;
    if (n > 0)
        ties->edges = calloc(n, sizeof(*ties->edges));
    if (n > 0 && !ties->edges)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct job_ties *parent = ties_of_parent(table, &parents[i]);

        if (!parent)
            return -ENOMEM;
        ties_link(ties, parent, parents[i].condition);
    }
    if (joined)
        ties_join(ties, joined);
    job->rare->ties_bytes = ties->n_edges * EDGE_BYTES;
    return ties_write(ties);
}

int ties_make_batch(struct job_table *table, struct job *job, struct tie_key key)
{
    struct job_ties *ties = ties_of(table, job, key);

    if (!ties)
        return -ENOMEM;
    ties->is_batch = true;
    ties->tally = (struct batch_tally){.open = true};
    return ties_write(ties);
}

void ties_announce(struct job_table *table, struct job *job)
{
    const struct job_ties *ties = job_own_ties(job);

    if (ties->batch)
        ties->batch->tally.live++;
    for (unsigned i = 0; i < ties->n_edges; i++)
        if (ties->edges[i].parent->end != 0)
            ties_due(table, ties->edges[i].parent);
}

/* ---- ends ---- */

static bool is_complete(const struct job_ties *ties)
{
    return ties->is_batch && !ties->tally.open && ties->tally.live == 0 && ties->end == 0;
}

void ties_review(struct job_table *table, struct job *job)
{
    struct job_ties *ties = job_own_ties(job);

    if (is_complete(ties))
        ties_due(table, ties);
}

bool ties_close_batch(struct job_table *table, struct job *job)
{
    struct job_ties *ties = job_own_ties(job);
    const bool was_open = ties->tally.open;

    ties->tally.open = false;
    ties_review(table, job);
    return was_open;
}

static void uncount(struct job_table *table, struct job_edge *edge, bool tell)
{
    struct job_ties *parent = edge->parent;

    if (!edge->counted)
        return;
    edge->counted = false;
    if (--parent->n_children == 0 && parent->end != 0 && tell)
        table->ties.handler->unneeded(table, parent);
}

void ties_uncount(struct job_table *table, struct job_ties *ties, bool tell)
{
    for (unsigned i = 0; i < ties->n_edges; i++) {
        struct job_edge *edge = &ties->edges[i];

        list_unlink(&edge->of_parent);
        list_push_back(&edge->parent->decided, &edge->of_parent);
        uncount(table, edge, tell);
    }
    ties->n_undecided = 0;
}

static void leave_tally(struct job_table *table, struct job_ties *batch)
{
    batch->tally.live--;
    if (is_complete(batch))
        ties_due(table, batch);
}

void ties_end(struct job_table *table, struct job *job)
{
    struct job_ties *ties = job_own_ties(job);

    ties->end = (uint8_t)job->state;
    ties_uncount(table, ties, true);
    if (!list_empty(&ties->children))
        ties_due(table, ties);
    if (!ties->batch)
        return;
    if (job->state == JOB_SUCCEEDED)
        ties->batch->tally.succeeded++;
    else
        ties->batch->tally.failed++;
    leave_tally(table, ties->batch);
}

void ties_retract(struct job_table *table, struct job *job)
{
    struct job_ties *ties = job_own_ties(job);

    ties_uncount(table, ties, true);
    if (ties->batch)
        leave_tally(table, ties->batch);
}

void ties_drop_edges(struct job_table *table, struct job_ties *ties)
{
    ties_uncount(table, ties, false);
    while (ties->n_edges > 0) {
        struct job_edge *edge = &ties->edges[--ties->n_edges];

        list_unlink(&edge->of_parent);
        ties_release(table, edge->parent);
    }
    free(ties->edges);
    ties->edges = NULL;
}

void ties_leave(struct job_table *table, struct job *job)
{
    struct job_ties *ties = job_own_ties(job), *batch;
    char id[PROTOCOL_ID_TEXT];

    if (!ties)
        return;
    if (!list_empty(&ties->children) || !list_empty(&ties->decided))
        ties->id = strdup(job_format_id(job, id));
    job->rare->ties = NULL;
    ties->job = NULL;
    ties_drop_edges(table, ties);
    batch = ties->batch;
    ties->batch = NULL;
    list_unlink(&ties->in_batch);
    if (batch)
        ties_release(table, batch);
    ties_release(table, ties);
}

/* ---- deciding ---- */

static bool holds(const struct job_edge *edge)
{
    const bool succeeded = edge->parent->end == JOB_SUCCEEDED;

    return edge->condition == TIE_END || succeeded == (edge->condition == TIE_SUCCESS);
}

/* The child may be freed. */
static void decide_edge(const struct job_table *table, struct job_edge *edge)
{
    const struct job_ties_handler *handler = table->ties.handler;
    struct job_ties *child = edge->child;

    FAULT_POINT("ties.decide");
    list_unlink(&edge->of_parent);
    list_push_back(&edge->parent->decided, &edge->of_parent);
    child->n_undecided--;
    if (child->broken)
        return;
    if (!holds(edge))
        child->broken = edge;
    if (child->broken && child->job)
        handler->doomed(child->job);
    else if (child->n_undecided == 0 && child->job)
        handler->released(child->job);
}

struct budget {
    usec_t end; /* monotonic; USEC_INFINITY = no limit */
    unsigned n;
};

static bool is_spent(struct budget *budget)
{
    if (budget->end == USEC_INFINITY || ++budget->n % CHECKED_EACH != 0)
        return false;
    return clock_now() >= budget->end;
}

/* Returns false if the budget is spent before all is decided. */
static bool work_off(const struct job_table *table, struct job_ties *ties, struct budget *budget)
{
    const struct job_ties_handler *handler = table->ties.handler;
    struct list *node;

    while (ties->end != 0 && (node = list_first(&ties->children))) {
        decide_edge(table, edge_of(node));
        if (is_spent(budget))
            return list_empty(&ties->children);
    }
    if (ties->end == 0 && ties->job && ties->broken)
        handler->doomed(ties->job);
    else if (ties->job && is_complete(ties))
        handler->complete(ties->job);
    return true;
}

static void decide(struct job_table *table, struct budget budget)
{
    struct list *node;

    while ((node = list_first(&table->ties.due))) {
        struct job_ties *ties = list_entry(node, struct job_ties, due);
        bool done;

        ties->held = true;
        list_unlink(&ties->due);
        done = work_off(table, ties, &budget);
        ties->held = false;
        if (!done)
            list_push_front(&table->ties.due, &ties->due);
        else
            ties_release(table, ties);
        if (!done || is_spent(&budget))
            break;
    }
    if (!list_empty(&table->ties.due))
        loop_defer(table->loop, &table->ties.decide);
}

static void on_turn(struct loop_deferred *deferred)
{
    struct job_table *table = list_entry(deferred, struct job_table, ties.decide);

    decide(table, (struct budget){.end = usec_add(clock_now(), TURN_BUDGET)});
}

void ties_due(struct job_table *table, struct job_ties *ties)
{
    if (!list_linked(&ties->due))
        list_push_back(&table->ties.due, &ties->due);
    if (table->loop)
        loop_defer(table->loop, &table->ties.decide);
}

void job_ties_init(struct job_ties_table *ties)
{
    list_init(&ties->all);
    list_init(&ties->unclaimed);
    list_init(&ties->due);
    loop_deferred_init(&ties->decide, on_turn);
}

void job_ties_deinit(struct job_ties_table *ties)
{
    struct job_table *table = list_entry(ties, struct job_table, ties);
    struct list *node;

    loop_undefer(&ties->decide);
    list_append(&ties->all, &ties->unclaimed);
    while ((node = list_first(&ties->all)))
        ties_free(table, list_entry(node, struct job_ties, link));
    index_deinit(&ties->by_key);
}
