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

static void on_doomed(struct job *job)
{
    n_doomed++;
    if (!job_ended(job))
        end(job, JOB_CANCELLED);
}

static void on_complete(struct job *job)
{
    end(job, job_own_ties(job)->tally.failed > 0 ? JOB_REJECTED : JOB_SUCCEEDED);
}

static void on_unneeded(struct job_table *jobs, const struct job_ties *ties)
{
    (void)jobs;
    ck_assert_uint_eq(ties->n_children, 0);
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

static struct tie_key key_of(const struct job *job)
{
    return (struct tie_key){.value = job->handle};
}

static struct tie_parent parent_of(struct job *job, enum tie_condition condition)
{
    return (struct tie_parent){.key = key_of(job),
                               .condition = (uint8_t)condition,
                               .end = job_ended(job) ? (uint8_t)job->state : 0,
                               .job = job};
}

static struct job *new_job(const struct tie_parent *parents, size_t n, struct job *batch)
{
    struct job *job;

    ck_assert_int_eq(job_new(&table, "", &job), 0);
    ck_assert_int_eq(ties_add(&table, job, key_of(job), parents, n, batch,
                              batch ? key_of(batch) : (struct tie_key){0}),
                     0);
    ties_announce(&table, job);
    if (job_waits_for_others(job))
        job_set_state(job, JOB_PENDING);
    return job;
}

static struct job *new_batch(void)
{
    struct job *job;

    ck_assert_int_eq(job_new(&table, "", &job), 0);
    ck_assert_int_eq(ties_make_batch(&table, job, key_of(job)), 0);
    ties_announce(&table, job);
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
    struct tie_parent parents[PARENTS];
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

        if (nodes[batch].is_batch && job_own_ties(nodes[batch].job)->tally.open) {
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
        const struct tie_parent tie = parent_of(parent, i % 2 == 0 ? TIE_SUCCESS : TIE_FAILURE);

        (void)new_job(&tie, 1, NULL);
    }
    ck_assert_uint_eq(job_own_ties(parent)->n_children, CHILDREN);
    job_set_state(parent, JOB_RUNNING);
    end(parent, JOB_SUCCEEDED);
    decide_all();
    ck_assert_uint_eq(n_released, CHILDREN / 2);
    ck_assert_uint_eq(n_doomed, CHILDREN / 2);
    ck_assert_uint_ge(n_turns, 2);
    ck_assert_uint_eq(job_own_ties(parent)->n_children, CHILDREN / 2);
}

/* ---- succession ---- */

TEST(Q9_ties_are_read_as_they_were_written)
{
    struct job *first = new_job(NULL, 0, NULL), *second = new_job(NULL, 0, NULL), *batch, *child;
    const struct tie_parent parents[] = {parent_of(first, TIE_SUCCESS), parent_of(second, TIE_END)};
    char *text;

    batch = new_batch();
    child = new_job(parents, 2, batch);
    text = strdup(job_own_ties(child)->text);
    ties_leave(&table, child);
    ck_assert_int_eq(ties_restore(&table, key_of(child), text, strlen(text), true), 0);
    ck_assert_int_eq(ties_restore(&table, key_of(child), text, strlen(text), false), 0);
    ck_assert_int_eq(ties_claim(&table, child, key_of(child), text, strlen(text)), 0);
    ck_assert_uint_eq(job_own_ties(child)->n_undecided, 2);
    ck_assert_ptr_eq(job_own_ties(child)->batch, job_own_ties(batch));
    ck_assert_uint_eq(job_own_ties(batch)->tally.live, 2);
    ck_assert_int_eq(ties_write(job_own_ties(child)), 0);
    ck_assert_str_eq(job_own_ties(child)->text, text);
    free(text);
}

TEST(damaged_ties_are_refused)
{
    static const char *const damaged[] = {"d1 s0 id", "d1 x0 id,", "d1 s1 id,",
                                          "d1 s0 ,",  ",",         "d,"};

    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        ck_assert_int_eq(
            ties_restore(&table, (struct tie_key){77, true}, damaged[i], strlen(damaged[i]), true),
            -EBADMSG);
    ck_assert(list_empty(&table.ties.unclaimed));
}

TEST(Q9_what_nobody_claims_counts_as_cancelled)
{
    static const char text[] = "d5 s0 lost,", other[] = "d5 f0 lost,";
    struct job *child;

    ck_assert_int_eq(job_new(&table, "", &child), 0);
    ck_assert_int_eq(
        ties_restore(&table, (struct tie_key){7, true}, other, sizeof(other) - 1, true), 0);
    ck_assert_int_eq(ties_restore(&table, (struct tie_key){6, true}, text, sizeof(text) - 1, true),
                     0);
    ck_assert_int_eq(ties_claim(&table, child, (struct tie_key){6, true}, text, sizeof(text) - 1),
                     0);
    job_set_state(child, JOB_PENDING);
    ck_assert_uint_eq(ties_settle(&table, true), 1);
    decide_all();
    ck_assert_int_eq(child->state, JOB_CANCELLED);
    ck_assert(list_empty(&table.ties.unclaimed));
}

const struct suite suite = {.setup = setup, .teardown = teardown};
