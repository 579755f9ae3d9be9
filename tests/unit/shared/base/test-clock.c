/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"

TEST(the_steady_clock_goes_on_from_its_origin)
{
    const usec_t hour = 3600 * USEC_PER_SEC, origin = clock_set_origin(0);
    const usec_t before = clock_steady(), realtime = clock_realtime();

    /* Each is rounded by itself, so that either may be ahead. */
    ck_assert_uint_le(usec_sub(realtime, before) + usec_sub(before, realtime), USEC_PER_SEC);
    ck_assert_uint_eq(clock_set_origin(origin), origin);
    ck_assert_uint_ge(clock_steady(), before);
    /* The clock was set back by an hour before this process. */
    ck_assert_uint_eq(clock_set_origin(origin + hour), origin + hour);
    ck_assert_uint_ge(clock_steady(), before + hour);
    ck_assert_uint_le(clock_steady_to_realtime(clock_steady()) - before, 60 * USEC_PER_SEC);
    ck_assert_uint_eq(clock_steady_to_realtime(0), 0);
}

TEST(sums_stay_at_infinity)
{
    ck_assert_uint_eq(usec_add(1, 2), 3);
    ck_assert_uint_eq(usec_add(USEC_INFINITY, 1), USEC_INFINITY);
    ck_assert_uint_eq(usec_add(1, USEC_INFINITY), USEC_INFINITY);
    ck_assert_uint_eq(usec_add(USEC_INFINITY - 1, 1), USEC_INFINITY);
    ck_assert_uint_eq(usec_add(USEC_INFINITY - 1, 2), USEC_INFINITY);
    ck_assert_uint_eq(usec_add(USEC_INFINITY, USEC_INFINITY), USEC_INFINITY);
}

TEST(differences_stay_at_zero_and_infinity_stays)
{
    ck_assert_uint_eq(usec_sub(3, 2), 1);
    ck_assert_uint_eq(usec_sub(2, 3), 0);
    ck_assert_uint_eq(usec_sub(0, USEC_INFINITY), 0);
    ck_assert_uint_eq(usec_sub(USEC_INFINITY, 5), USEC_INFINITY);
    ck_assert_uint_eq(usec_sub(USEC_INFINITY, USEC_INFINITY), USEC_INFINITY);
}

TEST(a_span_becomes_seconds_and_nanoseconds)
{
    struct timespec time = usec_to_timespec(2 * USEC_PER_SEC + 345678);

    ck_assert_int_eq(time.tv_sec, 2);
    ck_assert_int_eq(time.tv_nsec, 345678000);
    time = usec_to_timespec(999999);
    ck_assert_int_eq(time.tv_sec, 0);
    ck_assert_int_eq(time.tv_nsec, 999999000);
}
