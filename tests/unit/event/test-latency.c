/* SPDX-License-Identifier: MIT */
#include "supervisor/event/latency.h"
#include "supervisor/succession/record.h"
#include "tests/unit/suite.h"

TEST(of_none_nothing_is_known)
{
    struct latency latency = {0};

    ck_assert_uint_eq(latency_percentile(&latency, 50), 0);
    ck_assert_uint_eq(latency_percentile(&latency, 100), 0);
}

TEST(each_time_is_told_at_most_an_eighth_too_long)
{
    for (unsigned shift = 0; shift < 38; shift++) {
        for (usec_t add = 0; add < 16; add++) {
            struct latency latency = {0};
            usec_t took = ((usec_t)1 << shift) + add * (((usec_t)1 << shift) / 16), told;

            latency_add(&latency, took);
            told = latency_percentile(&latency, 50);
            ck_assert_uint_ge(told, took);
            ck_assert_uint_le(told, took + took / 8);
            ck_assert_uint_eq(latency_percentile(&latency, 99), told);
        }
    }
}

TEST(the_longest_of_all_is_counted_too)
{
    struct latency latency = {0};

    latency_add(&latency, USEC_INFINITY);
    latency_add(&latency, (usec_t)1 << 60);
    ck_assert_uint_ge(latency_percentile(&latency, 100), ((usec_t)1 << 39) - 1);
}

TEST(percentiles_are_those_of_all)
{
    struct latency latency = {0};

    for (unsigned i = 0; i < 98; i++)
        latency_add(&latency, 4);
    latency_add(&latency, 1024);
    latency_add(&latency, 65536);
    ck_assert_uint_eq(latency_percentile(&latency, 1), 4);
    ck_assert_uint_eq(latency_percentile(&latency, 98), 4);
    ck_assert_uint_eq(latency_percentile(&latency, 99), 1151);
    ck_assert_uint_eq(latency_percentile(&latency, 100), 73727);
}

TEST(what_is_long_ago_counts_no_more)
{
    struct latency latency = {0};

    for (unsigned i = 0; i < 100000; i++)
        latency_add(&latency, 1000000);
    for (unsigned i = 0; i < 2 * LATENCY_MAX_N; i++)
        latency_add(&latency, 5);
    ck_assert_uint_eq(latency_percentile(&latency, 50), 5);
    for (unsigned i = 0; i < 12 * LATENCY_MAX_N; i++)
        latency_add(&latency, 5);
    ck_assert_uint_eq(latency_percentile(&latency, 100), 5);
}

static unsigned bucket_of(usec_t took)
{
    struct histogram histogram = {0};

    histogram_add(&histogram, took);
    ck_assert_uint_eq(histogram.sum, took);
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
        if (histogram.counts[i] == 1)
            return i;
    ck_abort_msg("no bucket counts %llu", (unsigned long long)took);
}

TEST(a_bound_belongs_to_its_bucket)
{
    ck_assert_uint_eq(bucket_of(0), 0);
    ck_assert_uint_eq(bucket_of(1), 0);
    for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
        ck_assert_uint_eq(bucket_of(HISTOGRAM_LEAST << i), i);
        ck_assert_uint_eq(bucket_of((HISTOGRAM_LEAST << i) + 1), i + 1);
    }
    ck_assert_uint_eq(bucket_of(USEC_INFINITY), HISTOGRAM_BOUNDS);
}

TEST(a_saved_one_is_restored)
{
    struct histogram histogram = {0}, other = {0};
    struct saved_writer row = {0};

    histogram_add(&histogram, 5);
    histogram_add(&histogram, USEC_PER_SEC);
    histogram_add(&histogram, 2 * HISTOGRAM_LEAST << HISTOGRAM_BOUNDS);
    record_put(&row, &HISTOGRAM_RECORD, &histogram);
    struct saved_reader reader =
        (struct saved_reader){.at = row.bytes, .end = row.bytes + row.size};
    histogram_add(&other, 7);
    record_get(&reader, &HISTOGRAM_RECORD, &other);
    ck_assert(!reader.damaged);
    ck_assert_mem_eq(&histogram, &other, sizeof(other));
    free(row.bytes);
}

TEST(a_damaged_row_harms_nothing)
{
    static const uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    for (size_t size = 0; size <= sizeof(bytes); size++) {
        struct saved_reader reader = {.at = bytes, .end = bytes + size};
        struct histogram histogram = {0};

        record_get(&reader, &HISTOGRAM_RECORD, &histogram);
    }
}
