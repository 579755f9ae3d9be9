/* SPDX-License-Identifier: MIT */
#include "supervisor/config/config-group.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/job/job.h"
#include "supervisor/job/queue.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <malloc.h>

static struct job_table table;
static unsigned n_trims;

/* Takes the place of the C library's. */
int malloc_trim(size_t pad)
{
    ck_assert_uint_eq(pad, 0);
    n_trims++;
    return 1;
}

static void setup(void)
{
    ck_assert_int_eq(job_table_init(&table), 0);
}

static void teardown(void)
{
    job_table_deinit(&table);
}

static struct job *new_job(const char *name)
{
    struct job *job;

    ck_assert_int_eq(job_new(&table, name, &job), 0);
    return job;
}

static struct protocol_id id_of(const struct job *job)
{
    struct protocol_id id;

    job_get_id(job, &id);
    return id;
}

/* Brings a job to its end, as the cell would. */
static void finish(struct job *job)
{
    job_set_state(job, JOB_RUNNING);
    job_set_state(job, JOB_SUCCEEDED);
}

TEST(memory_is_given_back_after_a_flood_but_not_in_a_steady_state)
{
    enum {
        JOBS = 100000
    };
    static struct job *jobs[JOBS];

    for (int i = 0; i < JOBS; i++)
        finish(jobs[i] = new_job(""));
    for (int i = 0; i < JOBS; i++) {
        job_unref(&table, jobs[i]);
        finish(jobs[i] = new_job(""));
    }
    ck_assert_uint_eq(n_trims, 0);
    for (int i = 0; i < JOBS; i++)
        job_unref(&table, jobs[i]);
    ck_assert_uint_ge(n_trims, 2);
    size_t n = 0;
    list_for_each (node, &table.unused)
        n++;
    ck_assert_uint_lt(n, JOBS / 2);
}

TEST(a_made_id_written_as_text_finds_its_job)
{
    struct job *job = new_job("");
    char text[PROTOCOL_ID_TEXT];
    struct protocol_id id;

    ck_assert_int_eq(protocol_id_parse(&id, job_format_id(job, text)), 0);
    ck_assert_ptr_eq(job_by_id(&table, &id), job);
}

TEST(a_changed_bit_in_a_made_id_finds_nothing)
{
    struct job *job = new_job("");

    for (int bit = 0; bit < 64; bit++) {
        struct protocol_id id = id_of(job);
        id.low ^= UINT64_C(1) << bit;
        ck_assert_ptr_null(job_by_id(&table, &id));
        id = id_of(job);
        id.high ^= UINT64_C(1) << bit;
        ck_assert_ptr_null(job_by_id(&table, &id));
    }
}

TEST(made_ids_are_all_different)
{
    enum {
        N = 1000
    };
    struct protocol_id ids[N];
    int n_same = 0; /* an assertion for each pair would be half a million system calls */

    for (int i = 0; i < N; i++) {
        ids[i] = id_of(new_job(""));
        for (int j = 0; j < i; j++)
            n_same += ids[i].high == ids[j].high && ids[i].low == ids[j].low;
    }
    ck_assert_int_eq(n_same, 0);
}

TEST(J2_live_duplicate_id_is_refused_and_free_again_after_the_end)
{
    struct job *job = new_job("invoice-7"), *second;
    struct protocol_id id = {.name = "invoice-7"};

    ck_assert_int_eq(job_new(&table, "invoice-7", &second), JOB_E_EXISTS);
    ck_assert_ptr_eq(job_by_id(&table, &id), job);
    finish(job);
    job_unref(&table, job);
    ck_assert_ptr_null(job_by_id(&table, &id));
    ck_assert_int_eq(job_new(&table, "invoice-7", &second), 0);
}

TEST(a_chosen_id_that_looks_like_a_made_one_is_found_and_refused_twice)
{
    const char *name = "00112233445566778899aabbccddeeff";
    struct job *job = new_job(name), *second;
    struct protocol_id id;

    ck_assert_int_eq(protocol_id_parse(&id, name), 0);
    ck_assert_ptr_eq(job_by_id(&table, &id), job);
    ck_assert_int_eq(job_new(&table, name, &second), JOB_E_EXISTS);
}

TEST(a_chosen_id_equal_to_a_live_made_one_is_refused)
{
    char text[PROTOCOL_ID_TEXT];
    struct job *second;

    job_format_id(new_job(""), text);
    ck_assert_int_eq(job_new(&table, text, &second), JOB_E_EXISTS);
}

TEST(a_handle_of_a_freed_job_never_finds_its_successor)
{
    struct job *job = new_job("");
    uint64_t handle = job->handle;
    struct protocol_id id = id_of(job);

    finish(job);
    job_unref(&table, job);
    ck_assert_ptr_null(job_by_handle(&table, handle));
    ck_assert_ptr_eq(new_job(""), job); /* the same place */
    ck_assert_ptr_null(job_by_handle(&table, handle));
    ck_assert_ptr_null(job_by_id(&table, &id));
}

TEST(a_job_lives_as_long_as_somebody_holds_it)
{
    struct job *job = new_job("held");
    struct protocol_id id = {.name = "held"};

    job_ref(job);
    finish(job);
    job_unref(&table, job);
    ck_assert_ptr_eq(job_by_id(&table, &id), job);
    job_unref(&table, job);
    ck_assert_ptr_null(job_by_id(&table, &id));
    ck_assert_uint_eq(table.n_live, 0);
}

TEST(an_end_is_final, .signal = SIGABRT)
{
    struct job *job = new_job("");

    finish(job);
    job_set_state(job, JOB_QUEUED); /* asserts */
}

TEST(a_queued_job_cannot_succeed_without_running, .signal = SIGABRT)
{
    job_set_state(new_job(""), JOB_SUCCEEDED); /* asserts */
}

TEST(only_the_last_attempts_are_remembered_in_order)
{
    struct job *job = new_job("");

    for (uint32_t i = 1; i <= JOB_ATTEMPTS_KEPT + 3; i++) {
        job->attempt = i;
        job_note_attempt(job, "g/0", "signal", "killed by SIGSEGV");
    }
    ck_assert_uint_eq(job->n_attempts, JOB_ATTEMPTS_KEPT);
    for (uint32_t i = 0; i < JOB_ATTEMPTS_KEPT; i++)
        ck_assert_uint_eq(job->rare->attempts[i].number, i + 4);
}

/* What the table has taken from the heap, the handles included. */
static size_t heap(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

TEST(a_waiting_job_costs_at_most_320_bytes_beside_its_payload)
{
    enum {
        N = 1 << 15,
        SIZE = 64
    };
    static const char data[SIZE];
    const size_t before = heap();

    for (int i = 0; i < N; i++)
        ck_assert_int_eq(payload_set(&new_job("")->payload, data, SIZE), 0);
    ck_assert_uint_le((heap() - before) / N, 320 + SIZE); /* a sanitizer's heap counts as empty */
}

TEST(the_options_that_the_submitter_chose_are_known_as_such)
{
    const struct config_group config = {
        .max_retries = 5, .timeout = 6, .backoff_min = 7, .backoff_max = 8};
    struct job_options asked = JOB_OPTIONS_DEFAULT;
    struct job *job = new_job("");

    asked.timeout = USEC_INFINITY;
    asked.backoff_min = 70;
    job_set_options(job, &asked, &config);
    ck_assert_uint_eq(job->max_retries, 5);
    ck_assert_uint_eq(job->timeout, USEC_INFINITY);
    ck_assert_uint_eq(job->backoff_min, 70);
    ck_assert_uint_eq(job->backoff_max, 70); /* not below the shortest */
    ck_assert_uint_eq(job->priority, QUEUE_PRIORITY_DEFAULT);
    asked = job_asked(job);
    ck_assert_uint_eq(asked.max_retries, PROTOCOL_DEFAULT_RETRIES);
    ck_assert_uint_eq(asked.timeout, USEC_INFINITY);
    ck_assert_uint_eq(asked.backoff_min, 70);
    ck_assert_uint_eq(asked.backoff_max, PROTOCOL_DEFAULT_USEC);
    ck_assert_uint_eq(asked.priority, PROTOCOL_DEFAULT_PRIORITY);
}

static int n_told;

static void told(struct job_waiter *waiter, struct job *job)
{
    ck_assert_ptr_eq(waiter->job, job);
    n_told++;
}

TEST(waiters_are_told_of_every_change_and_let_go_at_the_end)
{
    struct job *job = new_job("");
    struct job_waiter *waiter = job_waiter_new(&table, job);

    waiter->changed = told;
    job_set_state(job, JOB_RUNNING);
    job_tell_waiters(&table, job);
    ck_assert(list_linked(&waiter->link));
    job_set_state(job, JOB_DEAD);
    job_tell_waiters(&table, job);
    ck_assert(!list_linked(&waiter->link));
    ck_assert_int_eq(n_told, 2);
    (void)job_waiter_free(&table, waiter);
}

static void stop_when_all_are_told(struct job_waiter *waiter, struct job *job)
{
    ck_assert(job_ended(job));
    if (++n_told == 3 * JOB_TOLD_AT_ONCE + 1)
        loop_stop(table.loop);
    (void)job_waiter_free(&table, waiter);
}

TEST(the_end_of_a_job_is_told_to_many_waiters_in_several_turns)
{
    struct job *job = new_job("");
    struct job_waiter *waiter;

    table.loop = new_loop();
    for (unsigned i = 0; i < 3 * JOB_TOLD_AT_ONCE; i++) {
        waiter = job_waiter_new(&table, job);
        waiter->changed = stop_when_all_are_told;
        job_waiter_be_patient(waiter);
    }
    waiter = job_waiter_new(&table, job);
    waiter->changed = stop_when_all_are_told;
    ck_assert_ptr_eq(job_first_waiter(job), waiter);
    job_set_state(job, JOB_CANCELLED);
    job_tell_waiters(&table, job);
    ck_assert_int_eq(n_told, JOB_TOLD_AT_ONCE);
    job_let_go(&table, job);
    ck_assert_int_eq(loop_run(table.loop), 0);
    ck_assert_int_eq(n_told, 3 * JOB_TOLD_AT_ONCE + 1);
    ck_assert_uint_eq(table.n_live, 0);
    loop_free(table.loop);
    table.loop = NULL;
}

TEST(patient_waiters_are_told_of_the_end_only)
{
    struct job *job = new_job("");
    struct job_waiter *waiter = job_waiter_new(&table, job);

    waiter->changed = told;
    job_waiter_be_patient(waiter);
    job_set_state(job, JOB_RUNNING);
    job_tell_waiters(&table, job);
    ck_assert_int_eq(n_told, 0);
    job_set_state(job, JOB_DEAD);
    job_tell_waiters(&table, job);
    ck_assert_int_eq(n_told, 1);
    (void)job_waiter_free(&table, waiter);
}

static size_t count(const struct list *list)
{
    size_t n = 0;

    list_for_each (node, list) {
        n++;
    }
    return n;
}

TEST(few_of_many_waiters_that_were_let_go_are_kept_for_the_next_jobs)
{
    struct job *job = new_job("");

    for (unsigned i = 0; i < 20000; i++)
        ck_assert_ptr_nonnull(job_waiter_new(&table, job));
    while (!list_empty(&job->waiters))
        (void)job_waiter_free(&table, job_first_waiter(job));
    ck_assert_uint_ge(count(&table.unused_waiters), 1000);
    ck_assert_uint_le(count(&table.unused_waiters), 5000);
    for (unsigned i = 0; i < 20000; i++)
        ck_assert_ptr_nonnull(job_waiter_new(&table, job));
    ck_assert(list_empty(&table.unused_waiters));
}

const struct suite suite = {.setup = setup, .teardown = teardown};
