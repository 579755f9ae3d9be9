/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/payload.h"
#include "supervisor/channel/reclaim.h"
#include "supervisor/job/job.h"
#include "tests/unit/suite.h"
#include <malloc.h>
#include <time.h>

#define MANY 10000
#define SIZE ((size_t)20000)

static struct payload payloads[MANY];
static unsigned n_trims;
static bool trims_slowly;

/* Takes the place of the C library's. */
int malloc_trim(size_t pad)
{
    const clock_t begin = clock();

    ck_assert_uint_eq(pad, 0);
    n_trims++;
    while (trims_slowly && clock() - begin < CLOCKS_PER_SEC / 100) {
    }
    return 1;
}

static void fill(unsigned from, unsigned to)
{
    static char bytes[SIZE];

    for (unsigned i = from; i < to; i++) {
        payload_init(&payloads[i]);
        ck_assert_int_eq(payload_set(&payloads[i], bytes, SIZE), 0);
    }
}

static void empty(unsigned from, unsigned to, unsigned step)
{
    for (unsigned i = from; i < to; i += step)
        payload_deinit(&payloads[i]);
}

static size_t resident(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    size_t size, n = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%zu %zu", &size, &n), 2);
    (void)fclose(file);
    return n * (size_t)sysconf(_SC_PAGESIZE);
}

TEST(memory_is_given_back_in_steps_after_a_flood_but_not_in_a_steady_state)
{
    fill(0, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        empty(i, i + 1, 1);
        fill(i, i + 1);
    }
    ck_assert_uint_eq(n_trims, 0);
    empty(0, MANY, 1);
    ck_assert_uint_eq(n_trims, MANY * SIZE / (RECLAIM_STEP + SIZE));
}

TEST(jobs_without_payloads_count_too)
{
    static struct job *jobs[100000];
    struct job_table table;

    ck_assert_int_eq(job_table_init(&table), 0);
    for (size_t i = 0; i < ELEMENTS(jobs); i++)
        ck_assert_int_eq(job_new(&table, "", &jobs[i]), 0);
    for (size_t i = 0; i < ELEMENTS(jobs); i++)
        job_unref(&table, jobs[i]);
    ck_assert_uint_ge(n_trims, 2);
    job_table_deinit(&table);
}

TEST(where_that_is_slow_large_payloads_give_back_their_own_memory)
{
    size_t before;

    fill(0, MANY);
    before = resident();
    trims_slowly = true;
    empty(0, MANY, 2);
    ck_assert_uint_eq(n_trims, 1);
    ck_assert_uint_lt(resident() + (MANY / 2 - 1000) * (SIZE / 2), before);
    empty(1, MANY, 2);
    ck_assert_uint_eq(n_trims, 2);
    ck_assert_uint_lt(reclaim.most, RECLAIM_STEP);
}
