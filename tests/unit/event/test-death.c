/* SPDX-License-Identifier: MIT */
#include "shared/base/cleanup.h"
#include "supervisor/channel/payload.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event.h"
#include "supervisor/event/latency.h"
#include "supervisor/succession/record.h"
#include "tests/unit/succession/memory-saver.h"
#include "tests/unit/suite.h"
#include <signal.h>

static struct death *death_number(struct death_log *log, uint64_t generation)
{
    struct death *death = death_new(log);

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
        struct death *death = death_number(&log, i);
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
    struct death *death = death_number(log, generation);

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

static void add_crash(struct death_log *log, const char *worker, usec_t at, const char *function)
{
    struct death *death = death_number(log, 1);
    char text[128];

    (void)snprintf(text, sizeof(text), "T\t1\tmill\tcrashed\nF\tc\tmill\t%s\t0\tmill.c\t7\n",
                   function);
    (void)snprintf(death->worker, sizeof(death->worker), "%s", worker);
    death->at = at;
    death->cause = DEATH_SIGNAL;
    death->exit = (struct spawn_exit){.signalled = true, .code = SIGSEGV};
    death_set_stack(death, strdup(text), strlen(text), NULL);
    death_log_add(log, death);
    death_unref(death);
}

static bool is_of_mill(const struct death *death, const void *userdata)
{
    return strncmp(death->worker, userdata, strlen(userdata)) == 0;
}

static bool is_always(const struct death *death, const void *userdata)
{
    return death && userdata;
}

static bool is_never(const struct death *death, const void *userdata)
{
    return !death && !userdata;
}

TEST(deaths_at_the_same_place_are_counted_together_within_bounds)
{
    struct death_place places[DEATH_PLACES_MAX];
    struct death_log log;
    char function[32];

    death_log_init(&log, 2000);
    add_crash(&log, "mill/0", 10, "grind");
    add_crash(&log, "shop/0", 11, "grind");
    add_crash(&log, "mill/1", 12, "sift");
    add_crash(&log, "mill/1", 13, "grind");
    add_death(&log, "mill/1", 2);
    ck_assert_uint_eq(death_count(&log, is_of_mill, is_always, "mill/", places), 3);
    ck_assert_int_eq(places[0].last->cause, DEATH_EXIT);
    ck_assert_str_eq(places[1].last->top, "grind, mill.c:7");
    ck_assert_uint_eq(places[1].n, 2);
    ck_assert_uint_eq(places[1].first_at, 10);
    ck_assert_uint_eq(places[1].last->at, 13);
    ck_assert_uint_eq(places[2].n, 1);
    ck_assert_uint_eq(death_count(&log, is_always, is_always, "", places), 4);
    ck_assert_uint_eq(death_count(&log, is_of_mill, is_never, "mill/", places), 2);
    ck_assert_uint_eq(places[1].n, 3);
    for (unsigned i = 0; i < 1100; i++) {
        (void)snprintf(function, sizeof(function), "f%u", i % 100);
        add_crash(&log, "mill/0", 100 + i, function);
    }
    ck_assert_uint_eq(death_count(&log, is_of_mill, is_always, "mill/", places), DEATH_PLACES_MAX);
    ck_assert_str_eq(places[0].last->top, "f99, mill.c:7");
    ck_assert_uint_eq(places[0].n, DEATHS_COUNTED / 100);
    death_log_deinit(&log);
}

TEST(a_report_that_somebody_holds_outlives_the_log)
{
    struct death_log log;
    struct death *death;

    death_log_init(&log, 1);
    death = death_number(&log, 7);
    death_log_add(&log, death);
    death_log_deinit(&log);
    ck_assert_uint_eq(death->references, 1);
    ck_assert_uint_eq(death->generation, 7);
    ck_assert_ptr_null(death_unref(death));
}

static struct death *add_stack(struct death_log *log, const char *worker, size_t size)
{
    struct death *death = death_number(log, 1);

    (void)snprintf(death->worker, sizeof(death->worker), "%s", worker);
    death_set_stack(death, calloc(1, size), size, NULL);
    return death;
}

TEST(the_stacks_of_all_reports_have_a_bound_which_groups_share)
{
    const size_t size = 64 << 10;
    struct death *one, *many[DEATH_STACKS_MAX / (64 << 10) + 10];
    const size_t n = ELEMENTS(many);
    struct death_log log;

    death_log_init(&log, 1);
    one = add_stack(&log, "shop/0", size);
    for (size_t i = 0; i < n; i++)
        many[i] = add_stack(&log, "mill/0", size); /* held, as by a dead letter */
    ck_assert_uint_le(log.shares.used[1], DEATH_STACKS_MAX);
    ck_assert_ptr_nonnull(one->stack);
    ck_assert_ptr_nonnull(many[n - 1]->stack);
    ck_assert_ptr_null(many[0]->stack);
    ck_assert_ptr_nonnull(strstr(many[0]->stack_missing, "dropped"));
    for (size_t i = 0; i < n; i++)
        death_unref(many[i]);
    ck_assert_uint_eq(log.shares.used[1], size);
    death_log_deinit(&log);
    ck_assert_ptr_null(one->stack);
    death_unref(one);
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

static struct death_log before, after;
static struct memory_saver saver;

static void setup(void)
{
    death_log_init(&before, 10);
    death_log_init(&after, 10);
    memory_saver_init(&saver);
}

static void teardown(void)
{
    death_log_deinit(&before);
    death_log_deinit(&after);
    memory_saver_deinit(&saver);
}

static void *copy(const char *text)
{
    char *to = strdup(text);

    ck_assert_ptr_nonnull(to);
    return to;
}

static struct death *make_death(uint64_t generation)
{
    struct death *death = death_new(&before);

    ck_assert_ptr_nonnull(death);
    (void)snprintf(death->worker, sizeof(death->worker), "shop/key/1");
    (void)snprintf(death->command, sizeof(death->command), "ls");
    (void)snprintf(death->job, sizeof(death->job), "some job");
    death->generation = generation;
    death->pid = 77;
    death->at = 1000;
    death->cause = DEATH_OOM;
    death->exit.signalled = true;
    death->exit.code = SIGKILL;
    death->exit.usage.max_rss = 12;
    death->exit.usage.user.tv_sec = 3;
    death->exit.usage.system.tv_usec = 4;
    death->uptime = 5;
    death->jobs_done = 6;
    death->owner_uid = 7;
    death->submitter_uid = 8;
    death->attempt = 9;
    death->n_messages = 1;
    death->messages = calloc(DEATH_MESSAGES_MAX, sizeof(*death->messages));
    death->messages[0] = (struct death_message){.id = 1, .sent_at = 2};
    (void)snprintf(death->messages[0].type, sizeof(death->messages[0].type), "order");
    death->state = copy("state");
    death->state_size = 5;
    death->state_of_job = true;
    death->stderr_text = copy("oops");
    death->stderr_size = 4;
    death_describe(death, NULL);
    return death;
}

static struct death *add_before(uint64_t generation)
{
    struct death *death = make_death(generation);

    death_log_add(&before, death);
    death_unref(death);
    return death;
}

static void assert_equal(const struct death *a, const struct death *b)
{
    ck_assert_uint_eq(a->serial, b->serial);
    ck_assert_str_eq(a->worker, b->worker);
    ck_assert_uint_eq(a->generation, b->generation);
    ck_assert_int_eq(a->pid, b->pid);
    ck_assert_uint_eq(a->at, b->at);
    ck_assert_uint_eq(a->cause, b->cause);
    ck_assert_str_eq(a->detail, b->detail);
    ck_assert_int_eq(a->exit.code, b->exit.code);
    ck_assert(a->exit.signalled == b->exit.signalled && !a->exit.core_dumped);
    ck_assert_mem_eq(&a->exit.usage, &b->exit.usage, sizeof(a->exit.usage));
    ck_assert_uint_eq(a->uptime, b->uptime);
    ck_assert_uint_eq(a->jobs_done, b->jobs_done);
    ck_assert_str_eq(a->command, b->command);
    ck_assert_str_eq(a->job, b->job);
    ck_assert_uint_eq(a->owner_uid, b->owner_uid);
    ck_assert_uint_eq(a->submitter_uid, b->submitter_uid);
    ck_assert_uint_eq(a->attempt, b->attempt);
    ck_assert_uint_eq(a->n_messages, b->n_messages);
    ck_assert_mem_eq(a->messages, b->messages, sizeof(*a->messages));
    ck_assert(a->state_of_job == b->state_of_job);
    ck_assert_uint_eq(a->state_size, b->state_size);
    ck_assert_mem_eq(a->state, b->state, a->state_size);
    ck_assert_uint_eq(a->stderr_size, b->stderr_size);
    ck_assert_mem_eq(a->stderr_text, b->stderr_text, a->stderr_size);
}

static void restore_all(void)
{
    for (size_t i = 0; i < saver.n_rows; i++) {
        struct saved_reader row = memory_saver_read(&saver, i, DEATH_ROW);

        ck_assert_int_eq(death_log_restore(&after, &row), 0);
    }
}

TEST(the_log_is_restored_in_its_order_with_all_it_says, .setup = setup, .teardown = teardown)
{
    for (uint64_t i = 1; i <= 12; i++) /* the first two are dropped again */
        add_before(i);
    death_log_save(&before, &saver.saver);
    restore_all();
    ck_assert_uint_eq(after.n_deaths, 10);
    ck_assert_uint_eq(after.n_total, 12);
    const struct list *node = after.deaths.next;
    list_for_each (other, &before.deaths) {
        assert_equal(list_entry(node, struct death, link), list_entry(other, struct death, link));
        node = node->next;
    }
}

static struct death *refer(const struct death *death)
{
    struct saved_writer writer = {0};

    death_put(&writer, death);
    saved_add(&saver.saver, "reference", &writer, NULL);
    struct saved_reader row = memory_saver_read(&saver, saver.n_rows - 1, "reference");
    return death_get(&row, &after);
}

TEST(a_reference_finds_its_report_in_the_log, .setup = setup, .teardown = teardown)
{
    add_before(1);
    struct death *second = add_before(2);
    add_before(3);
    death_log_save(&before, &saver.saver);
    restore_all();
    struct death *death = refer(second);
    ck_assert_ptr_nonnull(death);
    assert_equal(death, second);
    ck_assert(list_linked(&death->link));
    death_unref(death);
    ck_assert_ptr_null(refer(NULL));
}

TEST(a_report_that_has_left_the_log_goes_with_its_reference, .setup = setup, .teardown = teardown)
{
    struct death *old = make_death(4), *death = refer(old);

    ck_assert_ptr_nonnull(death);
    assert_equal(death, old);
    death_unref(death);
    death_unref(old);
}

static void restore_damaged(void *userdata, struct saved_reader *row)
{
    (void)death_log_restore(&after, row);
}

TEST(damaged_reports_do_no_harm, .setup = setup, .teardown = teardown)
{
    add_before(1);
    death_log_save(&before, &saver.saver);
    memory_saver_damage(&saver, 0, restore_damaged, NULL);
    struct saved_reader row = memory_saver_read(&saver, 0, DEATH_ROW);
    row.end -= 2;
    ck_assert_int_eq(death_log_restore(&after, &row), -EBADMSG);
}

TEST(latencies_are_restored, .setup = setup, .teardown = teardown)
{
    struct latency latency = {0}, restored;
    struct saved_writer writer = {0};

    for (usec_t i = 0; i < 3000; i++)
        latency_add(&latency, i * i);
    record_put(&writer, &LATENCY_RECORD, &latency);
    saved_add(&saver.saver, "latency", &writer, NULL);
    struct saved_reader row = memory_saver_read(&saver, 0, "latency");
    record_get(&row, &LATENCY_RECORD, &restored);
    ck_assert_mem_eq(&restored, &latency, sizeof(latency));
}
