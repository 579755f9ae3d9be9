/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/command/verb-options.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/text/value.h"
#include "tests/unit/suite.h"

#define SECOND USEC_PER_SEC

TEST(spans_are_written_in_two_units_at_most)
{
    static const struct {
        usec_t span;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {999, "999us"},
        {740000, "740ms"},
        {1200000, "1.2s"},
        {9999999, "9.9s"},
        {12 * SECOND, "12s"},
        {60 * SECOND, "1min"},
        {192 * SECOND, "3min 12s"},
        {7500 * SECOND, "2h 5min"},
        {86400 * SECOND, "1d"},
        {(4 * 86400 + 3 * 3600) * SECOND, "4d 3h"},
        {INT64_MAX, "infinity"},
        {USEC_INFINITY, "infinity"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_str_eq(SPAN(cases[i].span), cases[i].text);
}

TEST(the_past_is_told_as_ago_and_the_future_as_now)
{
    ck_assert_str_eq(AGO(200 * SECOND, 8 * SECOND), "3min 12s ago");
    ck_assert_str_eq(AGO(SECOND, SECOND), "now");
    ck_assert_str_eq(AGO(SECOND, 90 * SECOND), "now");
}

TEST(bytes_and_counts_are_readable)
{
    ck_assert_str_eq(BYTES(0), "0 B");
    ck_assert_str_eq(BYTES(1023), "1023 B");
    ck_assert_str_eq(BYTES(1024), "1.0 KiB");
    ck_assert_str_eq(BYTES(40055603), "38.2 MiB");
    ck_assert_str_eq(BYTES(UINT64_MAX), "16.0 EiB");
    ck_assert_str_eq(COUNT(0), "0");
    ck_assert_str_eq(COUNT(999), "999");
    ck_assert_str_eq(COUNT(1000), "1,000");
    ck_assert_str_eq(COUNT(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(text_from_elsewhere_cannot_steer_a_terminal)
{
    ck_assert_str_eq(SAFE("a\033[31mb"), "a\\x1b[31mb");
    ck_assert_str_eq(SAFE("two\tcolumns\n"), "two columns\\x0a");
    ck_assert_str_eq(SAFE("\xc2\x9b"
                          "5A"),
                     "\\x9b5A");
    ck_assert_str_eq(SAFE("\xff"), "\\xff");
    ck_assert_str_eq(SAFE("größer €"), "größer €");
    /* Marks for colours are control characters as well. */
    ck_assert_str_eq(SAFE(RED), "\\x04");
}

TEST(text_that_does_not_fit_is_cut_between_characters)
{
    char buffer[9];

    ck_assert_str_eq(format_safe(buffer, sizeof(buffer), "12345"), "12345");
    ck_assert_str_eq(format_safe(buffer, sizeof(buffer), "1234567890"), "12345…");
    ck_assert_str_eq(format_safe(buffer, sizeof(buffer), "1234€"), "1234…");
}

/* ---- lines ---- */

static char *printed(const struct terminal *like, const char *text)
{
    struct terminal terminal = *like;
    char *output = NULL;
    size_t size;

    terminal.file = open_memstream(&output, &size);
    terminal_print(&terminal, "%s", text);
    ck_assert_int_eq(fclose(terminal.file), 0);
    return output;
}

#define ck_assert_printed(like, text, expected)                                                    \
    do {                                                                                           \
        char *output_ = printed(like, text);                                                       \
        ck_assert_str_eq(output_, expected);                                                       \
        free(output_);                                                                             \
    } while (0)

TEST(colours_are_written_only_where_they_are_wanted)
{
    const struct terminal plain = {.utf8 = true}, colored = {.utf8 = true, .colors = true};

    ck_assert_printed(&plain, RED "dead" PLAIN " end", "dead end\n");
    ck_assert_printed(&colored, RED "dead" PLAIN " end", "\033[31mdead\033[0m end\033[0m\n");
    ck_assert_printed(&colored, "no mark", "no mark\n");
}

TEST(without_utf8_the_glyphs_have_ascii_forms)
{
    const struct terminal ascii = {0};

    ck_assert_printed(&ascii, "● ✗ │ 4 → 8 ü", "* x | 4 > 8 ?\n");
}

TEST(lines_are_cut_at_the_width_of_the_terminal)
{
    const struct terminal narrow = {.utf8 = true, .colors = true, .width = 6};

    ck_assert_printed(&narrow, "123456", "123456\n");
    ck_assert_printed(&narrow, "1234567", "12345…\n");
    ck_assert_printed(&narrow, RED "123456", "\033[31m123456\033[0m\n");
    ck_assert_printed(&narrow, GREEN "12" PLAIN "345678", "\033[32m12\033[0m345…\033[0m\n");
}

/* ---- values ---- */

TEST(a_span_is_one_of_the_configuration_that_an_integer_can_hold)
{
    usec_t span;

    ck_assert_int_eq(value_span("infinity", &span), 0);
    ck_assert_uint_eq(span, USEC_INFINITY);
    ck_assert_int_eq(value_span("9223372036854775807us", &span), 0);
    ck_assert_uint_eq(span, INT64_MAX);
    ck_assert_int_eq(value_span("9223372036854775808us", &span), -EINVAL);
    ck_assert_int_eq(value_span("5 parsecs", &span), -EINVAL);
    ck_assert_uint_eq(span, INT64_MAX);
}

TEST(a_range_of_spans_goes_upwards)
{
    usec_t min, max;

    ck_assert_int_eq(value_span_range("100ms..30s", &min, &max), 0);
    ck_assert_uint_eq(min, 100000);
    ck_assert_uint_eq(max, 30 * SECOND);
    ck_assert_int_eq(value_span_range("2s", &min, &max), 0);
    ck_assert_uint_eq(min, 2 * SECOND);
    ck_assert_uint_eq(max, 2 * SECOND);
    ck_assert_int_eq(value_span_range("30s..100ms", &min, &max), -EINVAL);
    ck_assert_int_eq(value_span_range("..1s", &min, &max), -EINVAL);
    ck_assert_int_eq(value_span_range("1s..", &min, &max), -EINVAL);
}

TEST(numbers_stay_within_their_bounds)
{
    int64_t value = 7;

    ck_assert_int_eq(value_number("12", 1, 12, &value), 0);
    ck_assert_int_eq(value, 12);
    ck_assert_int_eq(value_number("13", 1, 12, &value), -EINVAL);
    ck_assert_int_eq(value_number("0", 1, 12, &value), -EINVAL);
    ck_assert_int_eq(value_number("1x", 1, 12, &value), -EINVAL);
    ck_assert_int_eq(value_number("", 0, 12, &value), -EINVAL);
    ck_assert_int_eq(value_number("99999999999999999999", 0, INT64_MAX, &value), -EINVAL);
    ck_assert_int_eq(value, 12);
}

/* ---- options ---- */

static int parse(struct options *options, unsigned sets, char *const *items, size_t n_items,
                 const char **operands)
{
    struct arguments arguments = {.items = (const char *const *)items, .n_items = n_items};
    int r, n = 0;

    while ((r = options_next(options, sets, &arguments, &operands[n])) > 0)
        n++;
    return r < 0 ? r : n;
}

TEST(options_may_stand_anywhere_in_all_spellings)
{
    char *const items[] = {"one",       "--json",   "-n", "5",    "two",
                           "--limit=6", "-qs/sock", "--", "--all"};
    struct options options = OPTIONS_DEFAULTS;
    const char *operands[9];

    ck_assert_int_eq(parse(&options, OPTIONS_COMMON | OPTIONS_LIMIT, items,
                           sizeof(items) / sizeof(*items), operands),
                     3);
    ck_assert_str_eq(operands[0], "one");
    ck_assert_str_eq(operands[1], "two");
    ck_assert_str_eq(operands[2], "--all");
    ck_assert(options.json && options.quiet && !options.all);
    ck_assert_int_eq(options.limit, 6);
    ck_assert_str_eq(options.socket, "/sock");
}

TEST(a_dash_alone_is_an_operand)
{
    char *const items[] = {"-"};
    struct options options = OPTIONS_DEFAULTS;
    const char *operands[1];

    ck_assert_int_eq(parse(&options, OPTIONS_COMMON, items, 1, operands), 1);
    ck_assert_str_eq(operands[0], "-");
}

TEST(options_of_other_verbs_and_bad_values_are_refused)
{
    static char *const wrong[][2] = {
        {"--limit", "5"},   {"--json=yes", ""}, {"--retries", "many"},
        {"--timeout", "0"}, {"-Z", ""},         {"--backoff", "2s..1s"}};
    struct options options = OPTIONS_DEFAULTS;
    const char *operands[2];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_int_eq(parse(&options, OPTIONS_COMMON | OPTIONS_JOB, wrong[i], 2, operands),
                         -EINVAL);
}

TEST(the_same_letter_means_what_its_verb_says)
{
    char *const items[] = {"-t", "5s"};
    struct options job = OPTIONS_DEFAULTS, answer = OPTIONS_DEFAULTS;
    const char *operands[1];

    ck_assert_int_eq(parse(&job, OPTIONS_JOB, items, 2, operands), 0);
    ck_assert_uint_eq(job.job.timeout_usec, 5 * SECOND);
    ck_assert_uint_eq(job.timeout, 0);
    ck_assert_int_eq(parse(&answer, OPTIONS_CONNECT, items, 2, operands), 0);
    ck_assert_uint_eq(answer.timeout, 5 * SECOND);
}
