/* SPDX-License-Identifier: MIT */
#include "supervisor/process/recycle.h"
#include "tests/unit/suite.h"

#define MEGABYTE ((uint64_t)1 << 20)

static struct config_group *config;
static struct backoff_random generator;
static struct recycle recycle;

static void setup(void)
{
    ck_assert_int_eq(config_defaults(&config, "test"), 0);
    backoff_random_seed(&generator, 1);
    recycle_begin(&recycle, 1000, &generator);
}

static void teardown(void)
{
    config_group_free(config);
}

TEST(by_default_a_worker_is_never_worn_out)
{
    ck_assert_int_eq(recycle_after_job(&recycle, config, UINT64_MAX, 1000), RECYCLE_KEEP);
    ck_assert_uint_eq(recycle_age_at(&recycle, config), USEC_INFINITY);
}

/* The number of the job after which it is worn out. */
static uint64_t jobs_until_worn_out(void)
{
    uint64_t n = 1;

    while (recycle_after_job(&recycle, config, n, 1000) == RECYCLE_KEEP)
        n++;
    return n;
}

TEST(after_80_to_100_percent_of_its_jobs_it_is_and_not_all_at_the_same_one)
{
    uint64_t least = UINT64_MAX, most = 0;

    config->max_jobs = 1000;
    for (int i = 0; i < 1000; i++) {
        recycle_begin(&recycle, 1000, &generator);
        uint64_t n = jobs_until_worn_out();
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    ck_assert_uint_ge(least, 800);
    ck_assert_uint_le(least, 810);
    ck_assert_uint_ge(most, 990);
    ck_assert_uint_le(most, 1000);
}

TEST(one_job_is_one_whatever_its_share)
{
    config->max_jobs = 1;
    for (int i = 0; i < 1000; i++) {
        recycle_begin(&recycle, 1000, &generator);
        ck_assert_uint_eq(jobs_until_worn_out(), 1);
    }
}

TEST(memory_is_measured_after_the_first_job_and_then_at_most_ten_times_a_second)
{
    config->max_memory = MEGABYTE;
    ck_assert_int_eq(recycle_after_job(&recycle, config, 1, 2000), RECYCLE_MEASURE);
    ck_assert_int_eq(recycle_measured(&recycle, config, 0), RECYCLE_KEEP);
    ck_assert_int_eq(recycle_after_job(&recycle, config, 2, 2001), RECYCLE_KEEP);
    ck_assert_int_eq(recycle_after_job(&recycle, config, 3, 2000 + RECYCLE_MEASURE_EVERY - 1),
                     RECYCLE_KEEP);
    ck_assert_int_eq(recycle_after_job(&recycle, config, 4, 2000 + RECYCLE_MEASURE_EVERY),
                     RECYCLE_MEASURE);
}

TEST(a_first_measure_that_failed_is_made_up_for_after_the_next_job)
{
    config->max_memory = MEGABYTE;
    ck_assert_int_eq(recycle_after_job(&recycle, config, 1, 2000), RECYCLE_MEASURE);
    ck_assert_int_eq(recycle_after_job(&recycle, config, 2, 2001), RECYCLE_MEASURE);
}

TEST(growth_counts_over_what_it_had_after_its_first_job)
{
    config->max_memory = 10 * MEGABYTE;
    ck_assert_int_eq(recycle_measured(&recycle, config, 100 * MEGABYTE), RECYCLE_KEEP);
    ck_assert_int_eq(recycle_measured(&recycle, config, 107 * MEGABYTE), RECYCLE_KEEP);
    ck_assert_int_eq(recycle_measured(&recycle, config, 50 * MEGABYTE), RECYCLE_KEEP);
    ck_assert_int_eq(recycle_measured(&recycle, config, 110 * MEGABYTE), RECYCLE_MEMORY);
}

TEST(its_age_counts_from_when_it_was_ready)
{
    config->max_age = 100 * USEC_PER_SEC;
    for (int i = 0; i < 100; i++) {
        recycle_begin(&recycle, 5000, &generator);
        ck_assert_uint_ge(recycle_age_at(&recycle, config), 5000 + 80 * USEC_PER_SEC);
        ck_assert_uint_le(recycle_age_at(&recycle, config), 5000 + 100 * USEC_PER_SEC);
    }
}

TEST(what_is_read_is_the_memory_of_its_own)
{
    const size_t size = 64 * MEGABYTE;
    uint64_t before, after;
    volatile char *block = malloc(size);

    ck_assert_ptr_nonnull((void *)block);
    ck_assert_int_eq(recycle_read_memory(getpid(), &before), 0);
    for (size_t i = 0; i < size; i += 4096)
        block[i] = 1;
    ck_assert_int_eq(recycle_read_memory(getpid(), &after), 0);
    ck_assert_uint_gt(after, before + size / 2);
    free((void *)block);
}

TEST(the_memory_of_nobody_is_an_error)
{
    uint64_t bytes;

    ck_assert_int_lt(recycle_read_memory(0x7fffffff, &bytes), 0);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
