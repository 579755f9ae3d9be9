/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-stream.h"
#include "supervisor/job/job.h"
#include "tests/unit/suite.h"

static struct job_table table;
static struct job_streams set, other;
static char data[4096];

static void setup(void)
{
    ck_assert_int_eq(job_table_init(&table), 0);
    job_streams_init(&set);
    job_streams_init(&other);
}

static void teardown(void)
{
    job_table_deinit(&table);
    ck_assert_uint_eq(job_streams_bytes(&set) + job_streams_bytes(&other), 0);
    job_streams_deinit(&set);
    job_streams_deinit(&other);
}

const struct suite suite = {.setup = setup, .teardown = teardown};

static struct job *new_job(void)
{
    struct job *job;

    ck_assert_int_eq(job_new(&table, "", &job), 0);
    return job;
}

static void emit(struct job *job, usec_t at, size_t size)
{
    ck_assert_int_eq(job_stream_add(job, &set, at, data, size), 0);
}

TEST(items_at_the_same_time_or_before_are_told_apart)
{
    struct job *job = new_job();

    emit(job, 100, 1);
    emit(job, 100, 2);
    emit(job, 50, 3);
    ck_assert_uint_eq(job_stream_after(job, 0)->at, 100);
    ck_assert_uint_eq(job_stream_after(job, 100)->at, 101);
    ck_assert_uint_eq(job_stream_after(job, 101)->size, 3);
    ck_assert_ptr_null(job_stream_after(job, 102));
    ck_assert_ptr_eq(job_stream_next(job, job_stream_after(job, 0)), job_stream_after(job, 100));
    ck_assert_ptr_null(job_stream_next(job, job_stream_after(job, 101)));
}

TEST(streams_without_items_are_not_looked_at_for_room)
{
    struct job *watched = new_job(), *job = new_job();

    ck_assert_ptr_nonnull(job_stream_of(watched, &set));
    ck_assert(!list_linked(&watched->rare->stream->link));
    emit(job, 1, 1);
    job_stream_move(watched, &other);
    ck_assert(!list_linked(&watched->rare->stream->link));
    job_stream_move(job, &other);
    emit(watched, 1, 1);
    ck_assert_ptr_eq(list_first(&job->rare->stream->share->entries[0]), &job->rare->stream->link);
}

TEST(the_jobs_that_have_emitted_nothing_for_the_longest_time_lose_items_first)
{
    struct job *watched = new_job(), *old = new_job(), *new = NULL;

    ck_assert_ptr_nonnull(job_stream_of(watched, &set)); /* without items */
    emit(old, 1, sizeof(data));
    while (job_streams_bytes(&set) + JOB_STREAM_MAX < JOB_STREAMS_MAX) {
        new = new_job();
        for (unsigned i = 0; i < JOB_STREAM_MAX / sizeof(data); i++)
            emit(new, i, sizeof(data));
    }
    ck_assert_uint_eq(old->rare->stream->dropped, 0);
    new = new_job();
    for (unsigned i = 0; i < JOB_STREAM_MAX / sizeof(data); i++)
        emit(new, i, sizeof(data));
    emit(watched, 1, 1);
    ck_assert_uint_eq(old->rare->stream->dropped, 1);
    ck_assert_ptr_null(job_stream_after(old, 0));
    ck_assert_ptr_nonnull(job_stream_after(watched, 0));
    ck_assert_uint_le(job_streams_bytes(&set), JOB_STREAMS_MAX);
}

TEST(a_submitter_displaces_only_items_of_its_own_jobs)
{
    struct job *job = new_job(), *others = NULL;

    job->submitter_uid = 1;
    emit(job, 1, sizeof(data));
    for (unsigned n = 0; n < 2 * JOB_STREAMS_MAX / JOB_STREAM_MAX; n++) {
        others = new_job();
        others->submitter_uid = 2;
        for (unsigned i = 0; i < JOB_STREAM_MAX / sizeof(data); i++)
            emit(others, i, sizeof(data));
    }
    ck_assert_uint_eq(job->rare->stream->dropped, 0);
}

TEST(a_job_takes_its_items_to_another_group)
{
    struct job *job = new_job();

    emit(job, 1, 10);
    job_stream_move(job, &other);
    ck_assert_uint_eq(job_streams_bytes(&set), 0);
    ck_assert_uint_gt(job_streams_bytes(&other), 10);
    ck_assert_int_eq(job_stream_add(job, &set, 2, data, 1), 0);
    ck_assert_uint_eq(job_streams_bytes(&set), 0);
}
