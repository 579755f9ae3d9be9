/* SPDX-License-Identifier: MIT */
#include "shared/base/hash.h"
#include "supervisor/job/job-ties.h"
#include "tests/unit/suite.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct job_table table;
static unsigned n_released, n_doomed, n_turns;

static void end(struct job *job, enum job_state state)
{
    job_set_state(job, state);
    ties_end(&table, job);
}

static void on_released(struct job *job)
{
    n_released++;
    if (job->state == JOB_PENDING)
        job_set_state(job, JOB_QUEUED);
}

static void on_doomed(struct job *job, const struct job_fate *parent)
{
    ck_assert_int_ne(parent->end, 0);
    n_doomed++;
    if (!job_ended(job))
        end(job, JOB_CANCELLED);
}

static void on_complete(struct job *job)
{
    end(job, job_own_fate(job)->tally.failed > 0 ? JOB_REJECTED : JOB_SUCCEEDED);
}

static void on_unneeded(struct job_table *jobs, const struct job_fate *fate)
{
    ck_assert_uint_eq(fate->n_children, 0);
}

static const struct job_ties_handler HANDLER = {on_released, on_doomed, on_complete, on_unneeded};

static void setup(void)
{
    const char *reason;

    ck_assert_int_eq(job_table_init(&table), 0);
    ck_assert_int_eq(loop_new(&table.loop, &(struct loop_options){0}, &reason), 0);
    table.ties.handler = &HANDLER;
    n_released = n_doomed = n_turns = 0;
}

static void teardown(void)
{
    struct loop *loop = table.loop;

    job_table_deinit(&table);
    loop_free(loop);
}

/* ---- turns ---- */

static void on_turn(struct loop_deferred *deferred)
{
    n_turns++;
    if (list_empty(&table.ties.due))
        loop_stop(table.loop);
    else
        loop_defer(table.loop, deferred);
}

/* Runs turns until all is decided. */
static void decide_all(void)
{
    struct loop_deferred deferred;

    loop_deferred_init(&deferred, on_turn);
    loop_defer(table.loop, &deferred);
    ck_assert_int_eq(loop_run(table.loop), 0);
}

/* ---- jobs ---- */

static struct tie parent_of(struct job *job, enum tie_condition condition)
{
    struct tie tie = {.key = tie_key_of_handle(job->handle),
                      .condition = (uint8_t)condition,
                      .end = job_ended(job) ? (uint8_t)job->state : 0,
                      .job = job};

    (void)job_format_id(job, tie.id);
    return tie;
}

static struct job *new_job(const struct tie *parents, unsigned n, struct job *batch)
{
    static struct tie_list list;
    struct job *job;

    list.n = n;
    if (n > 0)
        memcpy(list.parents, parents, n * sizeof(*parents));
    list.batch = batch ? parent_of(batch, TIE_END) : (struct tie){.id = ""};
    ck_assert_int_eq(job_new(&table, "", &job), 0);
    ck_assert_int_eq(ties_add(&table, job, &list), 0);
    ties_count(job, false);
    if (job_waits_for_others(job))
        job_set_state(job, JOB_PENDING);
    return job;
}

static struct job *new_batch(void)
{
    struct job *job;

    ck_assert_int_eq(job_new(&table, "", &job), 0);
    ck_assert_int_eq(ties_make_batch(&table, job, tie_key_of_handle(job->handle),
                                     &(struct batch_tally){.open = true}),
                     0);
    job_set_state(job, JOB_PENDING);
    return job;
}

/* ---- a random graph, and a model of it ---- */

#define NODES   300
#define PARENTS 3

static struct node {
    struct job *job;
    unsigned parents[PARENTS], n;
    enum tie_condition conditions[PARENTS];
    int batch; /* -1 = none */
    bool is_batch;
    enum job_state outcome; /* if it begins */
    enum job_state expected;
} nodes[NODES];

static uint64_t seed;

static unsigned below(unsigned n)
{
    return (unsigned)(hash_mix(seed += UINT64_C(0x9e3779b97f4a7c15)) % n);
}

static enum job_state expect(struct node *node);

static enum job_state expect_batch(const struct node *batch)
{
    bool succeeded = true;

    for (struct node *node = nodes; node < nodes + NODES; node++)
        if (node->batch >= 0 && &nodes[node->batch] == batch)
            succeeded = expect(node) == JOB_SUCCEEDED && succeeded;
    return succeeded ? JOB_SUCCEEDED : JOB_REJECTED;
}

static enum job_state expect(struct node *node)
{
    enum job_state expected = node->is_batch ? JOB_QUEUED : node->outcome;

    if (node->expected != JOB_QUEUED)
        return node->expected;
    for (unsigned i = 0; i < node->n; i++) {
        const bool succeeded = expect(&nodes[node->parents[i]]) == JOB_SUCCEEDED;

        if (node->conditions[i] != TIE_END && succeeded != (node->conditions[i] == TIE_SUCCESS))
            expected = JOB_CANCELLED;
    }
    node->expected = node->is_batch ? expect_batch(node) : expected;
    return node->expected;
}

/* Members depend on nothing that is younger than their batch, which might wait for them. */
static void make_node(unsigned i)
{
    static const enum job_state outcomes[] = {JOB_SUCCEEDED, JOB_SUCCEEDED, JOB_SUCCEEDED,
                                              JOB_REJECTED,  JOB_DEAD,      JOB_CANCELLED};
    struct tie parents[PARENTS];
    struct node *node = &nodes[i];
    unsigned oldest = i;

    *node = (struct node){.batch = -1, .is_batch = below(10) == 0};
    node->outcome = outcomes[below(6)];
    if (node->is_batch) {
        node->job = new_batch();
        return;
    }
    if (i > 0 && below(3) == 0) {
        const unsigned batch = below(i);

        if (nodes[batch].is_batch && job_own_fate(nodes[batch].job)->tally.open) {
            node->batch = (int)batch;
            oldest = batch;
        }
    }
    for (node->n = oldest == 0 ? 0 : below(PARENTS + 1); node->n > oldest;)
        node->n--;
    for (unsigned p = 0; p < node->n; p++) {
        node->parents[p] = below(oldest);
        node->conditions[p] = (enum tie_condition)below(3);
        parents[p] = parent_of(nodes[node->parents[p]].job, node->conditions[p]);
    }
    node->job = new_job(parents, node->n, node->batch < 0 ? NULL : nodes[node->batch].job);
}

/* Ends a job that may begin, or closes a batch. */
static void act(struct node *node)
{
    if (node->is_batch && below(4) == 0) {
        (void)ties_close_batch(&table, node->job);
    } else if (node->job->state == JOB_QUEUED) {
        job_set_state(node->job, JOB_RUNNING);
        end(node->job, node->outcome);
    }
}

static bool all_ended(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!job_ended(nodes[i].job))
            return false;
    return true;
}

TEST(Q9_Q10_random_graphs_end_as_their_model)
{
    for (uint64_t n = 1; n <= 50; n++) {
        seed = n << 32;
        for (unsigned i = 0; i < NODES; i++) {
            make_node(i);
            for (unsigned j = below(3); j > 0; j--)
                act(&nodes[below(i + 1)]);
            if (below(4) == 0)
                decide_all();
        }
        while (!all_ended(NODES)) {
            for (unsigned i = 0; i < NODES; i++)
                act(&nodes[i]);
            decide_all();
        }
        for (unsigned i = 0; i < NODES; i++)
            ck_assert_msg(nodes[i].job->state == expect(&nodes[i]), "seed %u, job %u: %s, not %s",
                          (unsigned)n, i, job_state_to_string(nodes[i].job->state),
                          job_state_to_string(nodes[i].expected));
        for (unsigned i = 0; i < NODES; i++)
            job_unref(&table, nodes[i].job);
        ck_assert(list_empty(&table.ties.all));
    }
}

/* ---- many children ---- */

#define CHILDREN 300000u

TEST(Q9_a_parent_with_many_children_is_decided_over_many_turns)
{
    struct job *parent = new_job(NULL, 0, NULL);

    for (unsigned i = 0; i < CHILDREN; i++) {
        const struct tie tie = parent_of(parent, i % 2 == 0 ? TIE_SUCCESS : TIE_FAILURE);

        (void)new_job(&tie, 1, NULL);
    }
    ck_assert_uint_eq(job_own_fate(parent)->n_children, CHILDREN);
    job_set_state(parent, JOB_RUNNING);
    end(parent, JOB_SUCCEEDED);
    decide_all();
    ck_assert_uint_eq(n_released, CHILDREN / 2);
    ck_assert_uint_eq(n_doomed, CHILDREN / 2);
    ck_assert_uint_ge(n_turns, 2);
    ck_assert_uint_eq(job_own_fate(parent)->n_children, CHILDREN / 2);
}

/* ---- circles ---- */

TEST(Q9_a_search_for_a_circle_looks_at_a_bounded_number_of_jobs)
{
    struct job *batch = new_batch(), *near, *far;
    struct tie tie = parent_of(batch, TIE_END);
    struct tie_list list = {.n = 1};

    near = new_job(&tie, 1, NULL);
    for (unsigned i = 1; i <= TIES_CIRCLE_MAX; i++)
        (void)new_job(&tie, 1, NULL);
    tie = parent_of(near, TIE_END);
    far = new_job(&tie, 1, NULL);
    list.parents[0] = tie;
    ck_assert(ties_circle(job_own_fate(batch), &list));
    list.parents[0] = parent_of(far, TIE_END);
    ck_assert(!ties_circle(job_own_fate(batch), &list));
}

/* ---- succession ---- */

static struct tie_list read_list(const char *text)
{
    struct tie_list list;

    ck_assert_int_eq(tie_list_read(&list, text, strlen(text)), 0);
    return list;
}

TEST(Q9_a_job_that_returns_to_memory_has_its_ties_and_counts_once)
{
    struct job *first = new_job(NULL, 0, NULL), *second = new_job(NULL, 0, NULL), *batch, *child;
    const struct tie parents[] = {parent_of(first, TIE_SUCCESS), parent_of(second, TIE_END)};
    struct tie_list list;
    char *text;

    batch = new_batch();
    child = new_job(parents, 2, batch);
    ck_assert_int_eq(ties_write(job_own_ties(child)), 0);
    text = strdup(job_own_ties(child)->text);
    list = read_list(text);
    ties_leave(&table, child);
    ck_assert_int_eq(ties_add(&table, child, &list), 0);
    ck_assert_uint_eq(job_own_ties(child)->n_undecided, 2);
    ck_assert_ptr_eq(job_own_ties(child)->batch, job_own_fate(batch));
    ck_assert_uint_eq(job_own_fate(batch)->tally.live, 1);
    ck_assert_uint_eq(job_own_fate(first)->n_children, 1);
    ck_assert_int_eq(ties_write(job_own_ties(child)), 0);
    ck_assert_str_eq(job_own_ties(child)->text, text);
    free(text);
}

TEST(Q9_a_job_that_has_ended_says_what_it_was_tied_to)
{
    struct job *parent = new_job(NULL, 0, NULL), *batch = new_batch(), *child;
    const struct tie tie = parent_of(parent, TIE_END);
    static struct tie_list list;

    child = new_job(&tie, 1, batch);
    child->keep_result = true;
    job_set_state(parent, JOB_RUNNING);
    end(parent, JOB_REJECTED);
    decide_all();
    job_set_state(child, JOB_RUNNING);
    end(child, JOB_SUCCEEDED);
    job_unref(&table, parent);
    job_unref(&table, batch);
    ties_list(job_own_ties(child), &list);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_str_eq(list.parents[0].id, tie.id);
    ck_assert_int_eq(list.parents[0].end, JOB_REJECTED);
    ck_assert_int_eq(list.parents[0].condition, TIE_END);
    ck_assert_str_ne(list.batch.id, "");
    ck_assert(list_empty(&table.ties.all));
}

TEST(Q9_each_job_counts_once_if_at_all)
{
    struct job *parent, *child;

    ck_assert_int_eq(job_new(&table, "", &parent), 0);
    for (unsigned n_counts = 0; n_counts < 3; n_counts++) {
        struct tie_list list = {.parents = {parent_of(parent, TIE_END)}, .n = 1};

        ck_assert_int_eq(job_new(&table, "", &child), 0);
        ck_assert_int_eq(ties_add(&table, child, &list), 0);
        for (unsigned i = 0; i < n_counts; i++)
            ties_count(child, false);
        ck_assert(job_has_children(parent) == (n_counts > 0));
        end(child, JOB_CANCELLED);
        ck_assert(!job_has_children(parent));
        job_unref(&table, child);
    }
    end(parent, JOB_CANCELLED);
    job_unref(&table, parent);
}

TEST(damaged_ties_are_refused)
{
    static const char *const damaged[] = {"s0 1 id", "x0 1 id,", "s1 1 id,", "s0 1 ,",
                                          ",",       "s,",       "s0 id,"};
    struct tie_list list;

    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        ck_assert_int_eq(tie_list_read(&list, damaged[i], strlen(damaged[i])), -EBADMSG);
}

TEST(Q9_what_is_not_found_counts_as_cancelled)
{
    const struct tie_list lost = read_list("s0 5 lost,"), on_disk = read_list("s0 6 on-disk,");
    struct job *child, *other;

    ck_assert_int_eq(ties_expect(&table, &lost), 0);
    ck_assert_int_eq(ties_expect(&table, &on_disk), 0);
    ck_assert(!ties_hold(&table, &lost));
    ck_assert_int_eq(job_new(&table, "", &child), 0);
    ck_assert_int_eq(ties_add(&table, child, &lost), 0);
    job_set_state(child, JOB_PENDING);
    ck_assert_int_eq(job_new(&table, "", &other), 0);
    ck_assert_int_eq(ties_add(&table, other, &on_disk), 0);
    job_set_state(other, JOB_PENDING);
    ties_found(&table, 6);
    ck_assert_uint_eq(ties_settle(&table, true), 1);
    decide_all();
    ck_assert_int_eq(child->state, JOB_CANCELLED);
    ck_assert_int_eq(other->state, JOB_PENDING);
    ck_assert(list_empty(&table.ties.unclaimed));
}

const struct suite suite = {.setup = setup, .teardown = teardown};
