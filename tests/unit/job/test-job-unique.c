/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-unique.h"
#include "tests/unit/suite.h"
#include <stdlib.h>
#include <string.h>

static struct job_table table;

static void setup(void)
{
    ck_assert_int_eq(job_table_init(&table), 0);
}

static void teardown(void)
{
    job_table_deinit(&table);
}

static const struct unique_id KEY = {1, 2}, OTHER = {1, 3};

static struct job *new_job(const struct unique_id *id)
{
    struct job *job;

    ck_assert_int_eq(job_new(&table, "", &job), 0);
    ck_assert_int_eq(unique_set(job, id), 0);
    unique_join(&table, job);
    return job;
}

TEST(a_key_belongs_to_its_group)
{
    const struct unique_id one = unique_id_make("group", "key", 3);
    const struct unique_id same = unique_id_make("group", "key", 3);
    const struct unique_id other = unique_id_make("groupk", "ey", 2);

    ck_assert_mem_eq(&one, &same, sizeof(one));
    ck_assert(one.high != other.high && one.low != other.low);
    ck_assert(!unique_id_is_none(&one));
}

/* The ids are on disk. These are those of Python's hashlib.sha256(). */
TEST(ids_never_change)
{
    const struct unique_id key = unique_id_make("group", "key", 3);
    struct unique_digest parts;
    struct unique_id long_;
    uint8_t byte;

    ck_assert_uint_eq(key.high, UINT64_C(0xd0daeaccda2b0219));
    ck_assert_uint_eq(key.low, UINT64_C(0xa836a3d391b2f86d));
    unique_digest_begin(&parts, "group");
    for (unsigned i = 0; i < 1000; i++) {
        byte = (uint8_t)(i % 251);
        unique_digest_add(&parts, &byte, 1);
    }
    long_ = unique_digest_end(&parts);
    ck_assert_uint_eq(long_.high, UINT64_C(0x846fb14d4c9b3587));
    ck_assert_uint_eq(long_.low, UINT64_C(0xd84c89ac31c81f3f));
}

/* Bits of a payload that a submitter of one group made to have the FNV-1a digests of another
 * group's payload: a set bit is "\xe1\xe1", another is "aa". */
static const char PREFIX[] = "!x2w-6eAW";
static const char MADE[] =
    "a100f5db24027497b0a7094f42d5dc775797c44f38a97908dbc3b583834dd2acbada7341b59b04b0fbca96ca"
    "819b6f43422cafab9067793d3d498a6458d9bf5ef4683efdf1adfb095b80f21a41de3037a222508ed6a146fd"
    "a1a62f37777eaa9b0e4b03ea8db0bbae85dd78ae5832f59cf76ac518274b74bcc7e847ce99bb3409ee4370a7"
    "b4818c3f7f81a873ad1183e8604c34f46549358070ea835dfb315e57eaf7353016069bcd112a91a04d2eef5b"
    "ea7402888c8efdc14acd04b7214ef15f58af1150059f8daea867bd58dd42d62037c4d50c6f620cfb0f312a6c"
    "2e4e8245240294d5552f10795fd1881fcdf130c7";

static unsigned bit_of(size_t i)
{
    const char digit[] = {MADE[i / 8 * 2 + (i % 8 < 4)], '\0'};

    return (unsigned)strtoul(digit, NULL, 16) >> i % 4 & 1;
}

TEST(no_group_makes_a_key_collide_with_that_of_another_group)
{
    const char payload[] = "echo payroll";
    const struct unique_id victim = unique_id_make("victim", payload, strlen(payload));
    char made[sizeof(PREFIX) - 1 + sizeof(MADE) * 8];
    size_t size = sizeof(PREFIX) - 1;
    struct unique_id own;

    memcpy(made, PREFIX, size);
    for (size_t i = 0; i < (sizeof(MADE) - 1) * 4; i++, size += 2)
        memset(made + size, bit_of(i) ? 0xe1 : 'a', 2);
    own = unique_id_make("own", made, size);
    ck_assert(own.high != victim.high && own.low != victim.low);
}

TEST(the_first_job_holds_the_key_and_the_next_one_gets_it)
{
    struct job *first = new_job(&KEY), *other = new_job(&OTHER), *second = new_job(&KEY);

    ck_assert_ptr_eq(unique_holder(&table, &KEY), first);
    ck_assert_ptr_eq(unique_successor(&table, &KEY), second);
    ck_assert(!unique_waits(first) && !unique_waits(other) && unique_waits(second));
    ck_assert(unique_is_awaited(&table, first) && !unique_is_awaited(&table, other));
    ck_assert_ptr_eq(unique_leave(&table, first), second);
    ck_assert_ptr_null(unique_leave(&table, first));
    ck_assert_ptr_eq(unique_holder(&table, &KEY), second);
    ck_assert(!unique_waits(second));
    ck_assert_ptr_null(unique_leave(&table, second));
    ck_assert_ptr_null(unique_holder(&table, &KEY));
}

TEST(a_job_that_is_being_replaced_does_not_begin_unless_that_fails)
{
    struct job *old = new_job(&KEY), *new = new_job(&KEY);

    unique_replace(&table, new, old);
    ck_assert(unique_waits(old));
    ck_assert_ptr_eq(old->rare->replaced_by, new);
    ck_assert_ptr_eq(unique_end_replacing(&table, new), old);
    ck_assert_ptr_null(unique_end_replacing(&table, new));
    ck_assert(!unique_waits(old));
    job_unref(&table, old);
}

TEST(the_last_of_several_replacements_is_the_next_holder)
{
    struct job *running = new_job(&KEY), *old = new_job(&KEY), *new = new_job(&KEY);

    unique_replace(&table, new, old);
    ck_assert_ptr_eq(unique_successor(&table, &KEY), new);
    ck_assert_ptr_eq(unique_leave(&table, running), new);
    job_unref(&table, unique_end_replacing(&table, new));
}

TEST(a_job_that_is_to_be_cancelled_is_not_the_next_one)
{
    struct job *running = new_job(&KEY), *old = new_job(&KEY), *new = new_job(&KEY);

    old->cause = PROTOCOL_CAUSE_REQUESTED;
    unique_review(&table, old);
    ck_assert_ptr_eq(unique_successor(&table, &KEY), new);
    new->cause = PROTOCOL_CAUSE_REQUESTED;
    unique_review(&table, new);
    ck_assert_ptr_eq(unique_successor(&table, &KEY), new);
    old->cause = PROTOCOL_CAUSE_NONE;
    unique_review(&table, old);
    ck_assert_ptr_eq(unique_leave(&table, running), old);
}

TEST(a_job_that_another_one_replaces_next_does_not_begin_when_the_first_is_refused)
{
    struct job *old = new_job(&KEY), *first = new_job(&KEY), *second = new_job(&KEY);

    unique_replace(&table, first, old);
    unique_replace(&table, second, old);
    job_unref(&table, unique_end_replacing(&table, first));
    ck_assert(unique_waits(old));
    ck_assert_ptr_eq(old->rare->replaced_by, second);
    job_unref(&table, unique_end_replacing(&table, second));
    ck_assert(!unique_waits(old));
}

/* Otherwise this takes minutes. */
TEST(jobs_that_are_being_replaced_are_not_looked_at)
{
    const unsigned n = 200000;
    struct job **jobs = calloc(n, sizeof(struct job *));

    ck_assert_ptr_nonnull(jobs);
    for (unsigned i = 0; i < n; i++) {
        jobs[i] = new_job(&KEY);
        if (i > 0)
            unique_replace(&table, jobs[i], jobs[i - 1]);
        ck_assert_ptr_eq(unique_holder(&table, &KEY), jobs[0]);
        ck_assert_ptr_eq(unique_successor(&table, &KEY), i > 0 ? jobs[i] : NULL);
    }
    for (unsigned i = 1; i < n; i++)
        job_unref(&table, unique_end_replacing(&table, jobs[i]));
    free(jobs);
}

TEST(a_job_without_a_key_is_not_listed)
{
    const struct unique_id none = {0};
    struct job *job = new_job(&none);

    ck_assert(!job_is_unique(job));
    ck_assert_ptr_null(job->rare);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
