/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/values.h"
#include "tests/unit/suite.h"
#include <sched.h>

#define SECOND USEC_PER_SEC
#define BEFORE 77u /* what a refused value leaves */

static int integer(const char *text, uint64_t *ret)
{
    int64_t value = (int64_t)*ret;
    int r = values_integer(text, &value);

    *ret = (uint64_t)value;
    return r;
}

static int signal_number(const char *text, uint64_t *ret)
{
    int value = (int)*ret;
    int r = values_signal(text, &value);

    *ret = (uint64_t)value;
    return r;
}

static const struct {
    int (*read)(const char *text, uint64_t *ret);
    const char *text;
    int result;
    uint64_t value;
} NUMBERS[] = {
    /* Sizes have the base 1024. */
    {values_size, "4096", 0, 4096},
    {values_size, "512M", 0, UINT64_C(512) << 20},
    {values_size, "1.5G", 0, UINT64_C(1536) << 20},
    {values_size, "2G 512K 1B", 0, (UINT64_C(2) << 30) + (512 << 10) + 1},
    {values_size, "15E", 0, UINT64_C(15) << 60},
    {values_size, "infinity", 0, UINT64_MAX},
    {values_size, "", VALUES_E_INVALID, BEFORE},
    {values_size, "M", VALUES_E_INVALID, BEFORE},
    {values_size, "12X", VALUES_E_INVALID, BEFORE},
    {values_size, "12MB", VALUES_E_INVALID, BEFORE},
    {values_size, "12m", VALUES_E_INVALID, BEFORE},
    {values_size, "-1", VALUES_E_INVALID, BEFORE},
    {values_size, "16E", VALUES_E_RANGE, BEFORE},
    {values_size, "8E 8E", VALUES_E_RANGE, BEFORE},
    /* Counts are decimal numbers. */
    {values_count, " 12 ", 0, 12},
    {values_count, "18446744073709551614", 0, UINT64_MAX - 1},
    {values_count, "infinity", 0, UINT64_MAX},
    {values_count, "18446744073709551615", VALUES_E_RANGE, BEFORE},
    {values_count, "18446744073709551616", VALUES_E_RANGE, BEFORE},
    {values_count, "1 2", VALUES_E_INVALID, BEFORE},
    {values_count, "0x10", VALUES_E_INVALID, BEFORE},
    {values_count, "+1", VALUES_E_INVALID, BEFORE},
    {values_count, "", VALUES_E_INVALID, BEFORE},
    /* Integers may be negative. */
    {integer, "-20", 0, (uint64_t)-20},
    {integer, "+5", 0, 5},
    {integer, "9223372036854775807", 0, INT64_MAX},
    {integer, "9223372036854775808", VALUES_E_RANGE, BEFORE},
    {integer, "--5", VALUES_E_INVALID, BEFORE},
    {integer, "-", VALUES_E_INVALID, BEFORE},
    {integer, "5x", VALUES_E_INVALID, BEFORE},
    /* Percentages need their sign. */
    {values_percent, "150%", 0, 150},
    {values_percent, "150", VALUES_E_INVALID, BEFORE},
    {values_percent, "%", VALUES_E_INVALID, BEFORE},
    {values_percent, "1.5%", VALUES_E_INVALID, BEFORE},
    {values_percent, "150%%", VALUES_E_INVALID, BEFORE},
    {values_workers, "7", 0, 7},
    {values_workers, "0%", VALUES_E_RANGE, BEFORE},
    {values_workers, "1001%", VALUES_E_RANGE, BEFORE},
    {values_workers, "half", VALUES_E_INVALID, BEFORE},
    /* Signals have names and numbers. */
    {signal_number, "SIGTERM", 0, SIGTERM},
    {signal_number, " HUP ", 0, SIGHUP},
    {signal_number, "9", 0, 9},
    {signal_number, "", VALUES_E_INVALID, BEFORE},
    {signal_number, "SIG", VALUES_E_INVALID, BEFORE},
    {signal_number, "SIGNOPE", VALUES_E_INVALID, BEFORE},
    {signal_number, "TERMINATE", VALUES_E_INVALID, BEFORE},
    {signal_number, "RTMIN-1", VALUES_E_INVALID, BEFORE},
    {signal_number, "RTMIN+", VALUES_E_INVALID, BEFORE},
    {signal_number, "15x", VALUES_E_INVALID, BEFORE},
    {signal_number, "0", VALUES_E_RANGE, BEFORE},
    {signal_number, "65", VALUES_E_RANGE, BEFORE},
    {signal_number, "RTMIN+99", VALUES_E_RANGE, BEFORE},
};

TEST(numbers_are_read_or_refused, .n = ELEMENTS(NUMBERS))
{
    uint64_t value = BEFORE;
    int r = NUMBERS[_i].read(NUMBERS[_i].text, &value);

    ck_assert_msg(r == NUMBERS[_i].result && value == NUMBERS[_i].value, "'%s': %d, %llu",
                  NUMBERS[_i].text, r, (unsigned long long)value);
}

TEST(signals_for_real_time_count_from_either_end)
{
    int value;

    ck_assert_int_eq(values_signal("RTMIN", &value), 0);
    ck_assert_int_eq(value, SIGRTMIN);
    ck_assert_int_eq(values_signal("SIGRTMIN+3", &value), 0);
    ck_assert_int_eq(value, SIGRTMIN + 3);
    ck_assert_int_eq(values_signal("RTMAX-1", &value), 0);
    ck_assert_int_eq(value, SIGRTMAX - 1);
}

TEST(time_spans_are_read_as_systemd_reads_them)
{
    static const struct {
        const char *text;
        usec_t expected;
    } cases[] = {
        {"0", 0},
        {"50", 50 * SECOND},
        {" 50 ", 50 * SECOND},
        {"1min 30s", 90 * SECOND},
        {"1min30s", 90 * SECOND},
        {"1min 30", 90 * SECOND},
        {"2min 200ms", 120 * SECOND + 200000},
        {"1.5h", 5400 * SECOND},
        {"0.25", SECOND / 4},
        {"10 us", 10},
        {"10usec", 10},
        {"10 µs", 10},
        {"3 seconds", 3 * SECOND},
        {"1 2", 3 * SECOND},
        {"2d", 172800 * SECOND},
        {"1w", 604800 * SECOND},
        {"1M", 2629800 * SECOND},
        {"1y", 31557600 * SECOND},
        {"1m", 60 * SECOND},
        {"infinity", USEC_INFINITY},
        {" infinity ", USEC_INFINITY},
        {"18446744073709551614us", UINT64_MAX - 1},
    };

    for (size_t i = 0; i < ELEMENTS(cases); i++) {
        usec_t value = BEFORE;

        ck_assert_msg(values_time(cases[i].text, &value) == 0, "%s", cases[i].text);
        ck_assert_msg(value == cases[i].expected, "%s: %llu", cases[i].text,
                      (unsigned long long)value);
    }
}

TEST(what_is_no_time_span_is_refused)
{
    static const char *const invalid[] = {"",          " ",    "-1",      "s",         "x",
                                          "5 parsecs", "1.",   ".5",      "1..5s",     "1e9s",
                                          "5s x",      "5 5x", "infinit", "infinity 1"};
    static const char *const large[] = {"18446744073709551615us", "18446744073709551616us",
                                        "99999999999999999999", "600000y",
                                        "18446744073709551614us 1us"};
    usec_t value = BEFORE;

    for (size_t i = 0; i < ELEMENTS(invalid); i++)
        ck_assert_msg(values_time(invalid[i], &value) == VALUES_E_INVALID, "%s", invalid[i]);
    for (size_t i = 0; i < ELEMENTS(large); i++)
        ck_assert_msg(values_time(large[i], &value) == VALUES_E_RANGE, "%s", large[i]);
    ck_assert_uint_eq(value, BEFORE);
}

TEST(workers_may_be_a_share_of_the_processors_and_at_least_one)
{
    cpu_set_t all, one;
    uint64_t value = 77;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    ck_assert_int_eq(values_workers("300%", &value), 0);
    ck_assert_uint_eq(value, (uint64_t)CPU_COUNT(&all) * 3);

    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_int_eq(values_workers("50%", &value), 0);
    ck_assert_uint_eq(value, 1);
    ck_assert_int_eq(values_workers("250%", &value), 0);
    ck_assert_uint_eq(value, 2);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(shares_are_written_with_a_point_or_in_per_cent)
{
    double value = 77;

    ck_assert_int_eq(values_fraction("0.2", &value), 0);
    ck_assert_double_eq_tol(value, 0.2, 1e-12);
    ck_assert_int_eq(values_fraction("20%", &value), 0);
    ck_assert_double_eq_tol(value, 0.2, 1e-12);
    ck_assert_int_eq(values_fraction("1", &value), 0);
    ck_assert_double_eq(value, 1);
    ck_assert_int_eq(values_fraction("0", &value), 0);
    ck_assert_double_eq(value, 0);
    ck_assert_int_eq(values_fraction("-0.2", &value), VALUES_E_INVALID);
    ck_assert_int_eq(values_fraction("0,2", &value), VALUES_E_INVALID);
    ck_assert_int_eq(values_fraction("nan", &value), VALUES_E_INVALID);
    ck_assert_int_eq(values_fraction("1.", &value), VALUES_E_INVALID);
    ck_assert_int_eq(values_fraction("", &value), VALUES_E_INVALID);
}

/* The list after `text` was added to `before` (NULL = none). */
static void expect_cpus(const char *before, const char *text, const char *expected)
{
    char *list = before ? strdup(before) : NULL;

    ck_assert_int_eq(values_cpus(text, &list), 0);
    ck_assert_str_eq(list, expected);
    free(list);
}

TEST(cpus_are_numbers_and_ranges_and_lists_add_up)
{
    expect_cpus(NULL, "3", "3");
    expect_cpus(NULL, "0-3,6 8", "0-3,6,8");
    expect_cpus(NULL, " 5 , 4,3-3 ,", "5,4,3-3");
    expect_cpus(NULL, "0-8191", "0-8191");
    expect_cpus("0-1,7", "2 9-10", "0-1,7,2,9-10");
}

TEST(what_is_no_list_of_cpus_is_refused_and_changes_nothing)
{
    static const char *const invalid[] = {"", ",", "a", "1-", "-1", "1-2-3", "3-1", "1;2", "0x1"};
    char *list = strdup("1");

    for (size_t i = 0; i < ELEMENTS(invalid); i++)
        ck_assert_msg(values_cpus(invalid[i], &list) == VALUES_E_INVALID, "%s", invalid[i]);
    ck_assert_int_eq(values_cpus("8192", &list), VALUES_E_RANGE);
    ck_assert_int_eq(values_cpus("0-99999999999999999999999", &list), VALUES_E_RANGE);
    ck_assert_str_eq(list, "1");
    free(list);
}
