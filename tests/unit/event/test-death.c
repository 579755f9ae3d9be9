/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/payload.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event.h"
#include "tests/unit/suite.h"

static struct death *death_number(uint64_t generation)
{
    struct death *death = death_new();

    ck_assert_ptr_nonnull(death);
    death->generation = generation;
    return death;
}

TEST(the_log_keeps_the_newest_first_and_drops_the_oldest)
{
    struct death_log log;
    uint64_t expected = 5;

    death_log_init(&log, 3);
    for (uint64_t i = 1; i <= 5; i++) {
        struct death *death = death_number(i);
        death_log_add(&log, death);
        death_unref(death);
    }
    ck_assert_uint_eq(log.n_deaths, 3);
    ck_assert_uint_eq(log.n_total, 5);
    list_for_each (node, &log.deaths)
        ck_assert_uint_eq(list_entry(node, struct death, link)->generation, expected--);
    ck_assert_uint_eq(expected, 2);
    death_log_deinit(&log);
}

static void add_death(struct death_log *log, const char *worker, uint64_t generation)
{
    struct death *death = death_number(generation);

    (void)snprintf(death->worker, sizeof(death->worker), "%s", worker);
    death_log_add(log, death);
    death_unref(death);
}

TEST(a_group_that_crashes_all_the_time_leaves_the_reports_of_others)
{
    struct death_log log;
    struct list_cursor cursor;
    unsigned n = 0;

    death_log_init(&log, 10);
    add_death(&log, "shop/0", 1);
    add_death(&log, "shop/key/1", 2);
    add_death(&log, "stock/0", 3);
    /* On the newest, which will go. */
    list_cursor_begin(&cursor, &log.cursors, &log.deaths, false);
    for (uint64_t i = 0; i < 100; i++)
        add_death(&log, "mill/0", 100 + i);
    ck_assert_uint_eq(log.n_deaths, 10);
    list_for_each (node, &log.deaths)
        n += list_entry(node, struct death, link)->generation < 100;
    ck_assert_uint_eq(n, 3);
    for (uint64_t i = 0; i < 100; i++)
        add_death(&log, "stock/0", 300 + i);
    ck_assert_uint_eq(list_entry(cursor.at, struct death, link)->generation, 2);
    list_cursor_end(&cursor);
    death_log_deinit(&log);
}

TEST(a_report_that_somebody_holds_outlives_the_log)
{
    struct death_log log;
    struct death *death = death_number(7);

    death_log_init(&log, 1);
    death_log_add(&log, death);
    death_log_deinit(&log);
    ck_assert_uint_eq(death->references, 1);
    ck_assert_uint_eq(death->generation, 7);
    ck_assert_ptr_null(death_unref(death));
}

static const char *described(enum death_cause cause, bool signalled, int code, bool core)
{
    static struct death death;

    death = (struct death){
        .cause = cause,
        .exit = {.signalled = signalled, .code = code, .core_dumped = core},
    };
    death_describe(&death, NULL);
    return death.detail;
}

TEST(the_description_says_cause_and_end)
{
    ck_assert_str_eq(described(DEATH_SIGNAL, true, SIGSEGV, true),
                     "killed by SIGSEGV (core dumped)");
    ck_assert_str_eq(described(DEATH_EXIT, false, 3, false), "exited with status 3");
    ck_assert_str_eq(described(DEATH_OOM, true, SIGKILL, false),
                     "ran out of memory: killed by SIGKILL");
    ck_assert_str_eq(described(DEATH_WATCHDOG, true, SIGABRT, false),
                     "gave no sign of life within WatchdogSec: killed by SIGABRT");
    ck_assert_str_eq(described(DEATH_SIGNAL, true, 200, false), "killed by signal 200");
}

TEST(the_description_explains_the_cause)
{
    struct death death = {.cause = DEATH_OOM, .exit = {.signalled = true, .code = SIGKILL}};

    death_describe(&death, "its own limit");
    ck_assert_str_eq(death.detail, "ran out of memory: its own limit: killed by SIGKILL");
}

static int n_events;
static char last_message[64];

static void on_event(struct event_subscriber *subscriber, const struct event *event)
{
    n_events++;
    (void)snprintf(last_message, sizeof(last_message), "%s", event->message);
}

static void sink(enum log_level level, struct log_fields fields, const char *message)
{
}

TEST(events_reach_subscribers_until_they_leave_and_the_last_ones_are_kept)
{
    struct event_bus bus;
    struct event_subscriber subscriber = {.fn = on_event};
    char text[32];

    log_set_sink(sink);
    ck_assert_int_eq(event_bus_init(&bus), 0);
    event_subscribe(&bus.subscribers, &subscriber);
    for (int i = 0; i < EVENTS_KEPT + 10; i++) {
        (void)snprintf(text, sizeof(text), "event %d", i);
        event_emit(&bus, (struct event){.level = LOG_LEVEL_INFO, .type = "t", .message = text});
    }
    ck_assert_int_eq(n_events, EVENTS_KEPT + 10);
    ck_assert_str_eq(last_message, text);
    event_unsubscribe(&subscriber);
    event_emit(&bus, (struct event){.level = LOG_LEVEL_INFO, .type = "t", .message = "last"});
    ck_assert_int_eq(n_events, EVENTS_KEPT + 10);
    ck_assert_str_eq(event_kept(&bus, 0)->message, "event 11");
    ck_assert_str_eq(event_kept(&bus, EVENTS_KEPT - 1)->message, "last");
    ck_assert_ptr_null(event_kept(&bus, EVENTS_KEPT));
    event_bus_deinit(&bus);
}

TEST(small_and_large_payloads_are_held_alike)
{
    static const size_t SIZES[] = {0, 1, PAYLOAD_SMALL, PAYLOAD_SMALL + 1, 100000};
    static uint8_t bytes[100000];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
        struct payload from = PAYLOAD_NULL, to = PAYLOAD_NULL;
        ck_assert_int_eq(payload_set(&from, bytes, SIZES[i]), 0);
        payload_move(&to, &from);
        ck_assert_uint_eq(from.size, 0);
        ck_assert_uint_eq(to.size, SIZES[i]);
        ck_assert_int_eq(memcmp(payload_data(&to), bytes, SIZES[i]), 0);
        payload_deinit(&from);
        payload_deinit(&to);
        ck_assert_uint_eq(to.size, 0);
    }
}

const struct suite suite = {.name = "death"};
