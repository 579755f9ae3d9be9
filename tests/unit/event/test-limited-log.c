/* SPDX-License-Identifier: MIT */
#include "supervisor/event/limited-log.h"
#include "tests/unit/suite.h"

static struct loop *loop;
static struct limited_log limited;
static usec_t now;
static unsigned n_lines;
static char last[512];

static usec_t fake_now(const struct loop *unused)
{
    return now;
}

static void on_line(enum log_level level, struct log_fields fields, const char *message)
{
    n_lines++;
    (void)snprintf(last, sizeof(last), "%s", message);
}

static void set_up(void)
{
    const char *reason = "";

    ck_assert_msg(loop_new(&loop, &(struct loop_options){0}, &reason) == 0, "%s", reason);
    ck_assert_int_eq(limited_log_init(&limited, loop), 0);
    limited.now = fake_now;
    now = USEC_PER_SEC;
    n_lines = 0;
    last[0] = '\0';
    log_init(NULL, LOG_LEVEL_INFO);
    log_set_sink(on_line);
}

static void tear_down(void)
{
    limited_log_deinit(&limited);
    loop_free(loop);
    log_set_sink(NULL);
}

/* Writes a line if it may be; whether it was. */
static bool say(enum log_level level, const char *subject, const char *kind, const char *text)
{
    const struct limited_line line = {
        .level = level, .subject = subject, .kind = kind, .text = text};

    if (!limited_log_admits(&limited, &line))
        return false;
    log_write(level, LOG_NO_FIELDS, "%s", text);
    return true;
}

static const char DEAD[] = "job.dead", READY[] = "worker.ready";

static unsigned flood(unsigned n, const char *subject)
{
    const unsigned before = n_lines;

    for (unsigned i = 1; i <= n; i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "line %u", i);
        (void)say(LOG_LEVEL_ERROR, subject, DEAD, text);
    }
    return n_lines - before;
}

/* As the loop does. */
static void pass(usec_t time)
{
    now += time;
    timer_queue_run(loop_timers(loop), now, SIZE_MAX);
}

TEST(the_first_lines_are_written_and_the_others_summed_up)
{
    ck_assert_uint_eq(flood(2000, "web"), LIMITED_LOG_BURST);
    ck_assert_uint_eq(timer_queue_next(loop_timers(loop)), now + LIMITED_LOG_WINDOW);
    pass(LIMITED_LOG_WINDOW - 1);
    ck_assert_uint_eq(n_lines, LIMITED_LOG_BURST);
    pass(1);
    ck_assert_uint_eq(n_lines, LIMITED_LOG_BURST + 1);
    ck_assert_str_eq(last, "web: 1990 more like this in 10 s, the latest: line 2000");
    ck_assert_uint_eq(timer_queue_next(loop_timers(loop)), USEC_INFINITY);
}

TEST(while_a_flood_goes_on_each_window_is_one_line)
{
    (void)flood(2000, "web");
    for (unsigned i = 1; i <= 5; i++) {
        pass(LIMITED_LOG_WINDOW);
        ck_assert_uint_eq(flood(2000, "web"), 0);
        ck_assert_uint_eq(n_lines, LIMITED_LOG_BURST + i);
    }
    pass(LIMITED_LOG_WINDOW);
    ck_assert_str_eq(last, "web: 2000 more like this in 10 s, the latest: line 2000");
    /* Not after a window that was not full. */
    ck_assert(!say(LOG_LEVEL_ERROR, "web", DEAD, "only this"));
    pass(LIMITED_LOG_WINDOW);
    ck_assert_str_eq(last, "only this");
    ck_assert(say(LOG_LEVEL_ERROR, "web", DEAD, "calm"));
}

TEST(a_flood_is_over_after_a_quiet_window)
{
    (void)flood(2000, "web");
    pass(2 * LIMITED_LOG_WINDOW);
    ck_assert_uint_eq(flood(2000, "web"), LIMITED_LOG_BURST);
}

TEST(lines_within_the_limit_arm_no_timer)
{
    ck_assert_uint_eq(flood(LIMITED_LOG_BURST, "web"), LIMITED_LOG_BURST);
    ck_assert_uint_eq(timer_queue_next(loop_timers(loop)), USEC_INFINITY);
}

TEST(other_groups_kinds_and_levels_are_not_silenced)
{
    (void)flood(2000, "web");
    ck_assert(say(LOG_LEVEL_ERROR, "mail", DEAD, "x"));
    ck_assert(say(LOG_LEVEL_ERROR, NULL, DEAD, "x"));
    ck_assert(say(LOG_LEVEL_ERROR, "web", READY, "x"));
    ck_assert(say(LOG_LEVEL_WARNING, "web", DEAD, "x"));
    ck_assert(!say(LOG_LEVEL_ERROR, "web", DEAD, "x"));
}

TEST(debug_lines_and_what_is_not_shown_are_not_counted)
{
    log_set_max_level(LOG_LEVEL_DEBUG);
    for (unsigned i = 0; i < 100; i++)
        ck_assert(say(LOG_LEVEL_DEBUG, "web", DEAD, "x"));
    log_set_max_level(LOG_LEVEL_ERROR);
    for (unsigned i = 0; i < 100; i++)
        ck_assert(say(LOG_LEVEL_INFO, "web", DEAD, "x"));
    ck_assert_uint_eq(timer_queue_next(loop_timers(loop)), USEC_INFINITY);
}

TEST(more_subjects_than_are_followed_lose_no_summary)
{
    unsigned n_written = 0;

    for (unsigned i = 0; i < 3 * LIMITED_LOG_ENTRIES; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "group-%u", i);
        n_written += flood(LIMITED_LOG_BURST + 2, name);
    }
    pass(LIMITED_LOG_WINDOW);
    ck_assert_uint_eq(n_lines, 3 * LIMITED_LOG_ENTRIES * (LIMITED_LOG_BURST + 1));
}

TEST(the_end_sums_up_what_is_left)
{
    static char text[600];

    (void)flood(LIMITED_LOG_BURST + 1, "web");
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text + 250, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 9);
    (void)say(LOG_LEVEL_ERROR, "web", DEAD, text);
    limited_log_deinit(&limited);
    ck_assert_ptr_nonnull(strstr(last, "web: 2 more like this in 10 s, the latest: xxx"));
    ck_assert_str_eq(last + strlen(last) - 4, "x…");
    ck_assert_int_eq(limited_log_init(&limited, loop), 0);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
