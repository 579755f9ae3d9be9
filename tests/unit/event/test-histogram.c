/* SPDX-License-Identifier: MIT */
#include "supervisor/event/histogram.h"
#include "supervisor/succession/record.h"
#include "tests/unit/suite.h"

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
    struct saved_reader reader;

    histogram_add(&histogram, 5);
    histogram_add(&histogram, USEC_PER_SEC);
    histogram_add(&histogram, 2 * HISTOGRAM_LEAST << HISTOGRAM_BOUNDS);
    record_put(&row, &HISTOGRAM_RECORD, &histogram);
    reader = (struct saved_reader){.at = row.bytes, .end = row.bytes + row.size};
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

const struct suite suite = {.name = "histogram"};
