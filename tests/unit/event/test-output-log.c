/* SPDX-License-Identifier: MIT */
#include "supervisor/event/output-log.h"
#include "tests/unit/suite.h"

static struct output_log log_;

static void add(usec_t at, int level, const char *job, const char *text)
{
    output_log_add(&log_, &(struct output_line){
                              .at = at, .level = level, .job_at = 1, .job = job, .text = text});
}

static void set_up(void)
{
    output_log_init(&log_);
}

static void tear_down(void)
{
    output_log_deinit(&log_);
}

TEST(lines_are_kept_with_their_job_in_their_order)
{
    add(7, 3, "a", "first");
    add(8, 6, "b", "second");
    const struct output_line *line = output_log_after(&log_, 0);
    ck_assert_str_eq(line->job, "a");
    ck_assert_str_eq(line->text, "first");
    ck_assert_uint_eq(line->at, 7);
    ck_assert_int_eq(line->level, 3);
    ck_assert_uint_eq(line->job_at, 1);
    line = output_log_next(&log_, line);
    ck_assert_str_eq(line->job, "b");
    ck_assert_ptr_null(output_log_next(&log_, line));
    ck_assert_ptr_eq(output_log_after(&log_, 1), line);
    ck_assert_ptr_null(output_log_after(&log_, 2));
}

TEST(M6_a_flood_drops_the_oldest_lines_and_stays_within_its_bound)
{
    char text[32];

    for (int i = 0; i < 100000; i++) {
        (void)snprintf(text, sizeof(text), "line %d", i);
        add(0, 6, "job", text);
        ck_assert_uint_le(log_.size, OUTPUT_LOG_MAX);
    }
    ck_assert_uint_gt(log_.size, OUTPUT_LOG_MAX - 256);
    ck_assert_str_eq(output_log_after(&log_, 99999)->text, "line 99999");
    ck_assert_uint_gt(output_log_after(&log_, 0)->id, 90000);
}

TEST(a_line_larger_than_the_log_is_not_kept)
{
    static char text[OUTPUT_LOG_MAX];

    add(0, 6, "job", "kept");
    memset(text, 'x', sizeof(text) - 1);
    add(0, 6, "job", text);
    ck_assert_str_eq(output_log_after(&log_, 0)->text, "kept");
    ck_assert_uint_eq(log_.last_id, 1);
}

TEST(a_log_that_was_never_begun_can_be_torn_down)
{
    static struct output_log zeroed;

    output_log_deinit(&zeroed);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
