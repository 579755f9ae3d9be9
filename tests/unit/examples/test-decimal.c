/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"
#include "worker/examples/bank/decimal.h"

static const struct {
    const char *text;
    decimal_t amount;
    const char *written;
} good[] = {
    {"0", 0, "0.00"},
    {"12", 1200, "12.00"},
    {"12.5", 1250, "12.50"},
    {"12.05", 1205, "12.05"},
    {"007.10", 710, "7.10"},
    {"0.01", 1, "0.01"},
    {"-0.05", -5, "-0.05"},
    {"-3.10", -310, "-3.10"},
    {"92233720368547758.07", INT64_MAX, "92233720368547758.07"},
    {"-92233720368547758.08", INT64_MIN, "-92233720368547758.08"},
};

static const struct {
    const char *text;
    int error;
} bad[] = {
    {"", -EINVAL},
    {"-", -EINVAL},
    {".5", -EINVAL},
    {"1.", -EINVAL},
    {"1.234", -EINVAL},
    {"1,5", -EINVAL},
    {"+1", -EINVAL},
    {" 1", -EINVAL},
    {"1 ", -EINVAL},
    {"1e3", -EINVAL},
    {"--1", -EINVAL},
    {"0x10", -EINVAL},
    {"nan", -EINVAL},
    {"1.5.5", -EINVAL},
    {"1.-5", -EINVAL},
    {"92233720368547758.08", -ERANGE},
    {"-92233720368547758.09", -ERANGE},
    {"99999999999999999999999", -ERANGE},
};

TEST(test_amount_is_read_and_written_exactly, .n = (sizeof(good) / sizeof(good[0])))
{
    char text[DECIMAL_TEXT];
    decimal_t amount;

    ck_assert_int_eq(decimal_parse(&amount, good[_i].text), 0);
    ck_assert_int_eq(amount, good[_i].amount);
    ck_assert_str_eq(decimal_format(amount, text), good[_i].written);
}

TEST(test_what_is_no_amount_is_refused, .n = (sizeof(bad) / sizeof(bad[0])))
{
    decimal_t amount = 42;

    ck_assert_msg(decimal_parse(&amount, bad[_i].text) == bad[_i].error, "%s", bad[_i].text);
    ck_assert_int_eq(amount, 42);
}

TEST(test_ten_times_ten_cents_is_one)
{
    decimal_t dime, sum = 0;
    char text[DECIMAL_TEXT];

    ck_assert_int_eq(decimal_parse(&dime, "0.10"), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(decimal_add(sum, dime, &sum), 0);
    ck_assert_str_eq(decimal_format(sum, text), "1.00");
}

TEST(test_sum_that_does_not_fit_changes_nothing)
{
    decimal_t sum = 7;

    ck_assert_int_eq(decimal_add(INT64_MAX, 1, &sum), -ERANGE);
    ck_assert_int_eq(decimal_add(INT64_MIN, -1, &sum), -ERANGE);
    ck_assert_int_eq(sum, 7);
}
