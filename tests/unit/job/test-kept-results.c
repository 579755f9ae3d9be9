/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job.h"
#include "supervisor/job/kept-results.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"

static struct loop *loop;
static struct job_table table;
static struct kept_results results, others;

static void setup(void)
{
    loop = new_loop();
    ck_assert_int_eq(job_table_init(&table), 0);
    kept_results_init(&results, loop, &table);
    kept_results_init(&others, loop, &table);
    kept_results_set_bounds(&results, USEC_PER_SEC, 10, UINT64_MAX);
    kept_results_set_bounds(&others, USEC_PER_SEC, 10, UINT64_MAX);
}

static void teardown(void)
{
    kept_results_deinit(&results);
    kept_results_deinit(&others);
    ck_assert_uint_eq(table.n_live, 0);
    job_table_deinit(&table);
    loop_free(loop);
}

/* An ended job with this id, and a blob of this share as its result if there is one. */
static struct job *ended(const char *name, struct blob_share *share)
{
    struct payload payload = PAYLOAD_NULL;
    struct held_blob *blob;
    struct job *job;

    ck_assert_int_eq(job_new(&table, name, &job), 0);
    job_set_state(job, JOB_RUNNING);
    job_set_state(job, JOB_SUCCEEDED);
    if (share) {
        ck_assert_int_eq(
            held_blob_new(&blob, share, open("/dev/null", O_RDONLY | O_CLOEXEC), 1 << 20, true), 0);
        payload_set_shared(&payload, blob);
        payload_move(&job->result, &payload);
    }
    return job;
}

static bool is_known(const char *name)
{
    struct protocol_id id;

    ck_assert_int_eq(protocol_id_parse(&id, name), 0);
    return job_by_id(&table, &id) != NULL;
}

TEST(beyond_the_maximum_the_oldest_go)
{
    kept_results_set_bounds(&results, USEC_PER_SEC, 2, UINT64_MAX);
    kept_results_add(&results, ended("a", NULL));
    kept_results_add(&results, ended("b", NULL));
    kept_results_add(&results, ended("c", NULL));
    ck_assert(!is_known("a") && is_known("b") && is_known("c"));
    kept_results_set_bounds(&results, USEC_PER_SEC, 1, UINT64_MAX);
    ck_assert(!is_known("b") && is_known("c"));
    ck_assert_uint_eq(results.n_jobs, 1);
}

static struct job *sized(const char *name, size_t size)
{
    struct payload payload = PAYLOAD_NULL;
    struct job *job = ended(name, NULL);
    static const char zeros[1000];

    ck_assert_int_eq(payload_set(&payload, zeros, size), 0);
    payload_move(&job->result, &payload);
    return job;
}

static struct job *of_user(struct job *job, uid_t uid)
{
    job->submitter_uid = uid;
    return job;
}

TEST(a_user_displaces_only_its_own)
{
    kept_results_set_bounds(&results, USEC_PER_SEC, 3, 1000);
    kept_results_add(&results, of_user(sized("other", 400), 1));
    for (char name[] = "a"; *name <= 'e'; ++*name)
        kept_results_add(&results, of_user(ended(name, NULL), 2));
    ck_assert(is_known("other") && is_known("d") && is_known("e"));
    kept_results_add(&results, of_user(sized("f", 600), 2));
    kept_results_add(&results, of_user(sized("g", 600), 2));
    ck_assert(is_known("other") && !is_known("f") && is_known("g"));
    ck_assert_uint_eq(results.bytes, 1000);
    ck_assert_uint_eq(results.n_jobs, 2);
}

TEST(beyond_the_memory_the_oldest_go)
{
    kept_results_set_bounds(&results, USEC_PER_SEC, 10, 1000);
    kept_results_add(&results, sized("a", 400));
    kept_results_add(&results, sized("b", 600));
    ck_assert(is_known("a") && is_known("b"));
    kept_results_add(&results, sized("c", 400));
    ck_assert(!is_known("a") && is_known("b") && is_known("c"));
    ck_assert_uint_eq(results.bytes, 1000);
    kept_results_set_bounds(&results, USEC_PER_SEC, 10, 999);
    ck_assert(!is_known("b") && is_known("c"));
    ck_assert_uint_eq(results.bytes, 400);
}

TEST(a_result_too_large_for_the_memory_leaves_its_job_with_a_reason)
{
    struct job *job = sized("large", 1000);

    kept_results_set_bounds(&results, USEC_PER_SEC, 10, 999);
    kept_results_add(&results, sized("a", 400));
    kept_results_add(&results, job);
    ck_assert(is_known("a") && is_known("large"));
    ck_assert_uint_eq(job->result.size, 0);
    ck_assert_ptr_nonnull(strstr(job->reason, "1000 bytes"));
    ck_assert_uint_eq(results.bytes, 400);
}

/* As if they had been added so long ago. */
static void let_pass(usec_t time)
{
    list_for_each (node, &results.jobs)
        list_entry(node, struct kept_result, link)->since -= time;
}

TEST(each_goes_at_its_time)
{
    const usec_t now = loop_now(loop);

    kept_results_set_bounds(&results, 3 * USEC_PER_SEC, 10, UINT64_MAX);
    kept_results_add(&results, ended("a", NULL));
    ck_assert_uint_eq(timer_at(&results.timer), now + 3 * USEC_PER_SEC);
    let_pass(2 * USEC_PER_SEC);
    kept_results_add(&results, ended("b", NULL));
    timer_disarm(loop_timers(loop), &results.timer);
    results.timer.fn(&results.timer, now + 1 * USEC_PER_SEC);
    ck_assert(!is_known("a") && is_known("b"));
    ck_assert_uint_eq(timer_at(&results.timer), now + 3 * USEC_PER_SEC);
}

TEST(those_that_are_kept_follow_a_change)
{
    kept_results_set_bounds(&results, 3 * USEC_PER_SEC, 10, UINT64_MAX);
    kept_results_add(&results, ended("a", NULL));
    let_pass(2 * USEC_PER_SEC);
    kept_results_add(&results, ended("b", NULL));
    kept_results_set_bounds(&results, 1 * USEC_PER_SEC, 10, UINT64_MAX);
    ck_assert(!is_known("a") && is_known("b"));
    ck_assert_uint_eq(timer_at(&results.timer), loop_now(loop) + 1 * USEC_PER_SEC);
}

TEST(when_very_many_go_they_go_in_several_turns)
{
    usec_t at;

    kept_results_set_bounds(&results, USEC_PER_SEC, 20000, UINT64_MAX);
    for (int i = 0; i < 20000; i++)
        kept_results_add(&results, ended("", NULL));
    kept_results_set_bounds(&results, USEC_PER_SEC, 0, UINT64_MAX);
    ck_assert_uint_gt(results.n_jobs, 10000);
    for (unsigned turns = 1; results.n_jobs > 0; turns++) {
        ck_assert_uint_lt(turns, 10);
        at = timer_at(&results.timer);
        timer_disarm(loop_timers(loop), &results.timer);
        results.timer.fn(&results.timer, at);
    }
}

TEST(those_of_a_group_that_goes_are_dropped_in_several_turns)
{
    unsigned turns = 1;

    kept_results_set_bounds(&results, USEC_PER_SEC, 20000, UINT64_MAX);
    for (int i = 0; i < 20000; i++)
        kept_results_add(&results, ended("", NULL));
    for (; !kept_results_clear(&results); turns++)
        ck_assert_uint_gt(results.n_jobs, 0);
    ck_assert_uint_eq(turns, 3);
    ck_assert_uint_eq(results.n_jobs, 0);
}

TEST(a_dropped_one_belongs_to_no_group_though_somebody_holds_it)
{
    struct job *job = ended("a", NULL);

    job->group = (struct group *)&results; /* whatever */
    kept_results_add(&results, job);
    ck_assert_ptr_eq(job->kept->results, &results);
    job_ref(job);
    kept_results_drop(job);
    ck_assert_ptr_null(job->kept);
    ck_assert_ptr_null(job->group);
    ck_assert_uint_eq(results.n_jobs, 0);
    job_unref(&table, job);
}

TEST(a_large_payload_costs_the_oldest_large_results_of_its_sender_alone)
{
    struct blob_share *share = blob_share_new(&table.blobs), *others_share;
    struct held_blob *blob;

    others_share = blob_share_new(&table.blobs);
    table.blobs.max = 5;
    kept_results_add(&others, ended("other", others_share));
    kept_results_add(&results, ended("small", NULL));
    kept_results_add(&results, ended("a", share));
    kept_results_add(&results, ended("b", share));
    ck_assert(is_known("a"));
    ck_assert_int_eq(held_blob_new(&blob, share, -1, 1, true), 0);
    ck_assert(!is_known("a") && is_known("b") && is_known("other") && is_known("small"));
    (void)held_blob_unref(blob);
    (void)blob_share_unref(share);
    (void)blob_share_unref(others_share);
}

TEST(a_large_payload_costs_the_user_with_the_most_large_results)
{
    struct blob_share *share = blob_share_new(&table.blobs);
    struct held_blob *blob;

    table.blobs.max = 9;
    kept_results_add(&results, of_user(ended("other", share), 1));
    kept_results_add(&results, of_user(ended("a", share), 2));
    kept_results_add(&results, of_user(ended("b", share), 2));
    kept_results_add(&results, of_user(ended("c", share), 2));
    ck_assert_int_eq(held_blob_new(&blob, share, -1, 1, true), 0);
    (void)held_blob_unref(blob);
    table.blobs.max = 5;
    ck_assert_int_eq(held_blob_new(&blob, share, -1, 1, true), 0);
    ck_assert(is_known("other") && !is_known("a") && !is_known("b") && is_known("c"));
    (void)held_blob_unref(blob);
    (void)blob_share_unref(share);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
