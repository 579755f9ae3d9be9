/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-ties.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/hash.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How long edges are decided in one turn. */
#define TURN_BUDGET (4 * USEC_PER_MSEC)

/* How many bytes an edge counts for its submitter: with a share of the ties, roughly. */
#define EDGE_BYTES 256u

/* ---- fates ---- */

static struct job_fate *ties_find(const struct job_table *table, int64_t key)
{
    const uint64_t hash = hash_mix((uint64_t)key);

    if (key != 0)
        index_for_each_entry (fate, &table->ties.by_key, hash, struct job_fate, by_key)
            if (fate->key == key)
                return fate;
    return NULL;
}

static struct job_fate *fate_new(struct job_table *table, int64_t key, const char *id)
{
    const size_t size = strlen(id) + 1;
    struct job_fate *fate = fault_inject("job-ties") < 0 ? NULL : calloc(1, sizeof(*fate) + size);

    if (!fate)
        return NULL;
    memcpy(fate->id, id, size);
    fate->key = key;
    list_init(&fate->due);
    list_init(&fate->children);
    list_push_back(&table->ties.all, &fate->link);
    if (key != 0)
        index_add(&table->ties.by_key, &fate->by_key, hash_mix((uint64_t)key));
    return fate;
}

static void fate_free(struct job_table *table, struct job_fate *fate)
{
    if (fate->key != 0)
        index_remove(&table->ties.by_key, &fate->by_key);
    list_unlink(&fate->link);
    list_unlink(&fate->due);
    free(fate);
}

/* Frees the fate unless it is needed. */
static void fate_release(struct job_table *table, struct job_fate *fate)
{
    if (!fate->job && !fate->held && fate->n_children == 0 && fate->tally.live == 0 &&
        list_empty(&fate->children))
        fate_free(table, fate);
}

static bool is_complete(const struct job_fate *fate)
{
    return fate->is_batch && !fate->tally.open && fate->tally.live == 0 && fate->end == 0;
}

/* If there is anything to decide about the fate, queues it. */
static void fate_review(struct job_table *table, struct job_fate *fate)
{
    if (!is_complete(fate) && (fate->end == 0 || list_empty(&fate->children)))
        return;
    if (!list_linked(&fate->due))
        list_push_back(&table->ties.due, &fate->due);
    if (table->loop)
        loop_defer(table->loop, &table->ties.decide);
}

/* Before the first edge, ties may have been made for others. */
static struct job_ties *ties_make(struct job *job, unsigned n)
{
    struct job_ties *ties = job_own_ties(job);
    const bool is_new = !ties;

    if (ties && n == 0)
        return ties;
    if (job_make_rare(job) < 0)
        return NULL;
    ties = realloc(ties, sizeof(*ties) + n * sizeof(ties->edges[0]));
    if (!ties)
        return NULL;
    if (is_new)
        *ties = (struct job_ties){0};
    return job->rare->ties = ties;
}

static void move_to(struct list *list, struct job_fate *fate)
{
    list_unlink(&fate->link);
    list_push_back(list, &fate->link);
}

static int fate_give(struct job_table *table, struct job_fate *fate, struct job *job)
{
    struct job_ties *ties = ties_make(job, 0);

    if (!ties)
        return -ENOMEM;
    ties->fate = fate;
    fate->job = job;
    fate->end = job_ended(job) ? (uint8_t)job->state : 0;
    move_to(&table->ties.all, fate);
    fate_review(table, fate);
    return 0;
}

/* Returns the fate of the job, which is made if there is none; NULL without memory. */
static struct job_fate *fate_of(struct job_table *table, const struct tie *tie)
{
    struct job_fate *fate = ties_find(table, tie->key);
    struct job *job = tie->job;
    struct protocol_id id;

    if (fate)
        return fate;
    fate = fate_new(table, tie->key, tie->id);
    if (!fate)
        return NULL;
    fate->end = tie->end;
    if (!job && tie->end == 0 && protocol_id_parse(&id, tie->id) == 0)
        job = job_by_id(table, &id);
    if (!job && tie->end == 0)
        move_to(&table->ties.unclaimed, fate);
    if (!job || fate_give(table, fate, job) == 0)
        return fate;
    fate_release(table, fate);
    return NULL;
}

/* ---- edges ---- */

static bool holds(uint8_t condition, uint8_t end)
{
    return condition == TIE_END || (end == JOB_SUCCEEDED) == (condition == TIE_SUCCESS);
}

static void add_edge(struct job_table *table, struct job *child, struct job_fate *parent,
                     uint8_t condition)
{
    struct job_ties *ties = child->rare->ties;
    struct job_edge *edge = &ties->edges[ties->n++];

    *edge = (struct job_edge){.parent = parent, .child = child, .condition = condition};
    list_init(&edge->of_parent);
    if (parent->end != 0 && holds(condition, parent->end))
        return;
    list_push_back(&parent->children, &edge->of_parent);
    ties->n_undecided++;
    fate_review(table, parent);
}

/* A live job is not a child of this parent any more. The parent's result may go, and with it the
 * parent. */
static void uncount(struct job_table *table, struct job_fate *parent)
{
    const bool held = parent->held;

    parent->held = true;
    if (--parent->n_children == 0 && parent->end != 0)
        table->ties.handler->unneeded(table, parent);
    parent->held = held;
}

/* Removes the edges and the membership. `counted`: parents and batch have counted the job, and do
 * not any more. */
static void drop_edges(struct job_table *table, struct job_ties *ties, bool counted)
{
    struct job_fate *batch = TAKE_PTR(ties->batch);

    while (ties->n > 0) {
        struct job_edge *edge = &ties->edges[--ties->n];
        struct job_fate *parent = edge->parent;

        list_unlink(&edge->of_parent);
        if (counted)
            uncount(table, parent);
        fate_release(table, parent);
    }
    ties->n_undecided = 0;
    if (!batch)
        return;
    batch->tally.live -= counted;
    fate_review(table, batch);
    fate_release(table, batch);
}

static int add_all(struct job_table *table, struct job *job, const struct tie_list *list)
{
    struct job_ties *ties = job->rare->ties;

    for (unsigned i = 0; i < list->n; i++) {
        struct job_fate *parent = fate_of(table, &list->parents[i]);

        if (!parent)
            return -ENOMEM;
        add_edge(table, job, parent, list->parents[i].condition);
    }
    if (list->batch.id[0] == '\0')
        return 0;
    ties->batch = fate_of(table, &list->batch);
    return ties->batch ? 0 : -ENOMEM;
}

/* ---- circles ---- */

/* The fates that a walk has come to, from a batch up to all that waits for it. */
struct walk {
    const struct tie_list *list;
    struct job_fate *seen[TIES_CIRCLE_MAX];
    unsigned n, n_edges;
    bool found;
};

static void walk_to_job(struct walk *walk, const struct job *job)
{
    for (unsigned i = 0; job && i < walk->list->n; i++)
        walk->found = walk->found || walk->list->parents[i].job == job;
}

static void walk_to(struct walk *walk, struct job_fate *fate)
{
    if (!fate || fate->seen || walk->n == ELEMENTS(walk->seen))
        return;
    fate->seen = true;
    walk->seen[walk->n++] = fate;
    walk_to_job(walk, fate->job);
}

static void walk_on(struct walk *walk, const struct job_fate *fate)
{
    const struct job_ties *own = fate->job ? job_own_ties(fate->job) : NULL;

    if (own)
        walk_to(walk, own->batch);
    list_for_each_entry (edge, &fate->children, struct job_edge, of_parent) {
        const struct job *child = edge->child;

        if (walk->found || walk->n_edges++ >= TIES_CIRCLE_MAX)
            return;
        walk_to_job(walk, child);
        walk_to(walk, job_own_fate(child));
        walk_to(walk, job_own_ties(child)->batch);
    }
}

bool ties_wait_for(const struct job *job, const struct job *parent)
{
    const struct job_ties *ties = job_own_ties(job);
    char id[PROTOCOL_ID_TEXT];

    if (!ties || ties->n == 0)
        return false;
    (void)job_format_id(parent, id);
    for (unsigned i = 0; i < ties->n; i++)
        if (strcmp(ties->edges[i].parent->id, id) == 0)
            return true;
    return false;
}

bool ties_circle(struct job_fate *batch, const struct tie_list *list)
{
    struct walk walk = {.list = list};

    walk_to(&walk, batch);
    for (unsigned i = 0; i < walk.n && !walk.found; i++)
        walk_on(&walk, walk.seen[i]);
    for (unsigned i = 0; i < walk.n; i++)
        walk.seen[i]->seen = false;
    return walk.found;
}

int ties_add(struct job_table *table, struct job *job, const struct tie_list *list)
{
    struct job_ties *ties = job_own_ties(job);
    int r;

    if (ties && (ties->n > 0 || ties->batch)) /* it is restored for the second time */
        return 0;
    ties = ties_make(job, list->n);
    if (!ties)
        return -ENOMEM;
    r = add_all(table, job, list);
    if (r < 0)
        drop_edges(table, ties, false);
    job->rare->ties_bytes = ties->n * EDGE_BYTES;
    return r;
}

int ties_make_batch(struct job_table *table, struct job *job, int64_t key,
                    const struct batch_tally *tally)
{
    struct tie tie = {.key = key, .job = job};
    struct job_fate *fate;

    (void)job_format_id(job, tie.id);
    fate = fate_of(table, &tie);
    if (!fate)
        return -ENOMEM;
    fate->is_batch = true;
    fate->tally.open = tally->open;
    fate->tally.succeeded = tally->succeeded;
    fate->tally.failed = tally->failed;
    return 0;
}

void ties_count(struct job *job, bool expected)
{
    struct job_ties *ties = job_own_ties(job);
    const bool counts = !ties->counted && !expected;

    ties->counted = true;
    if (!counts)
        return;
    for (unsigned i = 0; i < ties->n; i++)
        ties->edges[i].parent->n_children++;
    if (ties->batch)
        ties->batch->tally.live++;
}

/* ---- ends ---- */

void ties_review(struct job_table *table, struct job *job)
{
    if (job_own_fate(job))
        fate_review(table, job_own_fate(job));
}

bool ties_close_batch(struct job_table *table, struct job *job)
{
    struct job_fate *fate = job_own_fate(job);
    const bool was_open = fate->tally.open;

    fate->tally.open = false;
    fate_review(table, fate);
    return was_open;
}

void ties_end(struct job_table *table, struct job *job)
{
    struct job_ties *ties = job_own_ties(job);

    if (ties->batch && job->refusal == 0)
        *(job->state == JOB_SUCCEEDED ? &ties->batch->tally.succeeded
                                      : &ties->batch->tally.failed) += 1;
    if (!job->record && (job->keep_result || job_has_children(job)))
        (void)ties_write(ties); /* without memory it is not shown later */
    drop_edges(table, ties, ties->counted);
    if (!ties->fate)
        return;
    ties->fate->end = (uint8_t)job->state;
    fate_review(table, ties->fate);
}

void ties_leave(struct job_table *table, struct job *job)
{
    struct job_ties *ties = job_own_ties(job);

    if (!ties)
        return;
    drop_edges(table, ties, false);
    if (ties->fate) {
        ties->fate->job = NULL;
        fate_release(table, ties->fate);
    }
    job->rare->ties = NULL;
    free(ties->text);
    free(ties);
}

/* ---- deciding ---- */

/* The child may be freed. */
static void decide_edge(const struct job_table *table, struct job_edge *edge)
{
    const struct job_ties_handler *handler = table->ties.handler;
    struct job *child = edge->child;

    FAULT_POINT("ties.decide");
    list_unlink(&edge->of_parent);
    child->rare->ties->n_undecided--;
    if (!holds(edge->condition, edge->parent->end))
        handler->doomed(child, edge->parent);
    else if (child->rare->ties->n_undecided == 0)
        handler->released(child);
}

static void decide(const struct job_table *table, struct job_fate *fate)
{
    struct job_edge *edge = list_first_entry(&fate->children, struct job_edge, of_parent);

    if (is_complete(fate) && fate->job)
        table->ties.handler->complete(fate->job);
    else if (fate->end != 0 && edge)
        decide_edge(table, edge);
}

static void on_turn(struct loop_deferred *deferred)
{
    struct job_table *table = list_entry(deferred, struct job_table, ties.decide);
    const usec_t until = usec_add(clock_now(), TURN_BUDGET);
    struct list *node;

    while ((node = list_first(&table->ties.due)) && clock_now() < until) {
        struct job_fate *fate = list_entry(node, struct job_fate, due);

        list_unlink(node);
        fate->held = true;
        decide(table, fate);
        fate->held = false;
        if (fate->end != 0) /* else a batch whose end is being written */
            fate_review(table, fate);
        fate_release(table, fate);
    }
    if (node)
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

    loop_undefer(&ties->decide);
    list_append(&ties->all, &ties->unclaimed);
    list_until_empty (fate, &ties->all, struct job_fate, link)
        fate_free(table, fate);
    index_deinit(&ties->by_key);
}

/* ---- as a list ---- */

static void fate_to_tie(struct tie *ret, const struct job_fate *fate)
{
    *ret = (struct tie){.key = fate->key, .job = fate->job, .end = fate->end};
    memcpy(ret->id, fate->id, strlen(fate->id) + 1);
}

void ties_list(const struct job_ties *ties, struct tie_list *ret)
{
    ret->n = 0;
    ret->batch = (struct tie){.id = ""};
    if (ties->n == 0 && !ties->batch && ties->text)
        (void)tie_list_read(ret, ties->text, strlen(ties->text));
    for (unsigned i = 0; i < ties->n; i++) {
        struct tie *tie = &ret->parents[ret->n++];

        fate_to_tie(tie, ties->edges[i].parent);
        tie->condition = ties->edges[i].condition;
    }
    if (ties->batch)
        fate_to_tie(&ret->batch, ties->batch);
}

int ties_write(struct job_ties *ties)
{
    struct tie_list list;
    char *text;

    if (ties->n == 0 && !ties->batch)
        return 0;
    ties_list(ties, &list);
    text = fault_inject("tie-text") < 0 ? NULL : tie_list_write(&list);
    if (!text)
        return -ENOMEM;
    free(ties->text);
    ties->text = text;
    return 0;
}

void ties_recall(struct job *job, const char *text, size_t size)
{
    struct job_ties *ties = size > 0 ? ties_make(job, 0) : NULL;

    if (ties && !ties->text)
        ties->text = strndup(text, size);
}

/* ---- succession ---- */

int ties_expect(struct job_table *table, const struct tie_list *list)
{
    struct job_fate *fates[JOB_PARENTS_MAX + 1] = {NULL};

    for (unsigned i = 0; i <= list->n; i++) {
        const struct tie *tie = i < list->n ? &list->parents[i] : &list->batch;

        if (tie->id[0] == '\0')
            continue;
        fates[i] = fate_of(table, tie);
        if (!fates[i])
            return -ENOMEM;
    }
    for (unsigned i = 0; i < list->n; i++)
        fates[i]->n_children++;
    if (fates[list->n])
        fates[list->n]->tally.live++;
    return 0;
}

bool ties_expect_end(struct job_table *table, int64_t key, enum job_state end)
{
    struct job_fate *fate = ties_find(table, key);

    if (!fate || fate->n_children == 0)
        return false;
    if (!fate->job)
        fate->end = (uint8_t)end;
    return true;
}

bool ties_hold(const struct job_table *table, const struct tie_list *list)
{
    for (const struct tie *tie = list->parents; tie < list->parents + list->n; tie++) {
        const struct job_fate *fate = ties_find(table, tie->key);
        const uint8_t end = fate ? fate->end : tie->end;

        if (end == 0 || !holds(tie->condition, end))
            return false;
    }
    return true;
}

void ties_found(struct job_table *table, int64_t key)
{
    struct job_fate *fate = ties_find(table, key);

    if (fate)
        move_to(&table->ties.all, fate);
}

int ties_claim(struct job_table *table, struct job *job, int64_t key)
{
    struct job_fate *fate = ties_find(table, key);

    return fate && !fate->job ? fate_give(table, fate, job) : 0;
}

size_t ties_settle(struct job_table *table, bool durable)
{
    size_t n = 0;

    list_for_each_entry_safe (fate, &table->ties.unclaimed, struct job_fate, link) {
        if (tie_key_is_durable(fate->key) != durable)
            continue;
        move_to(&table->ties.all, fate);
        if (fate->end == 0 && fate->n_children > 0) {
            fate->end = JOB_CANCELLED;
            n++;
        }
        fate_review(table, fate);
        fate_release(table, fate);
    }
    return n;
}
