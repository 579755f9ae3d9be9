/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death.h"
#include "supervisor/event/latency.h"
#include "supervisor/succession/record.h"
#include "tests/unit/succession/memory-saver.h"
#include "tests/unit/suite.h"

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
    struct death *death = death_new();

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
    death->exit.usage.ru_maxrss = 12;
    death->exit.usage.ru_utime.tv_sec = 3;
    death->exit.usage.ru_stime.tv_usec = 4;
    death->uptime = 5;
    death->jobs_done = 6;
    death->owner_uid = 7;
    death->submitter_uid = 8;
    death->attempt = 9;
    death->n_messages = 1;
    death->messages = calloc(DEATH_MESSAGES_MAX, sizeof(*death->messages));
    death->messages[0] = (struct death_message){.id = 1, .sent_at = 2, .in_hand = true};
    (void)snprintf(death->messages[0].type, sizeof(death->messages[0].type), "order");
    death->state = copy("state");
    death->state_size = 5;
    death->state_of_job = true;
    death->stderr_text = copy("oops");
    death->stderr_size = 4;
    death_describe(death, NULL);
    return death;
}

static struct death *add_death(uint64_t generation)
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

TEST(the_log_is_restored_in_its_order_with_all_it_says)
{
    const struct list *node;

    for (uint64_t i = 1; i <= 12; i++) /* the first two are dropped again */
        add_death(i);
    ck_assert_int_eq(death_log_save(&before, &saver.saver), 0);
    restore_all();
    ck_assert_uint_eq(after.n_deaths, 10);
    ck_assert_uint_eq(after.n_total, 12);
    node = after.deaths.next;
    list_for_each (other, &before.deaths) {
        assert_equal(list_entry(node, struct death, link), list_entry(other, struct death, link));
        node = node->next;
    }
}

static struct death *refer(const struct death *death)
{
    struct saved_writer writer = {0};
    struct saved_reader row;

    death_put(&writer, death);
    ck_assert_int_eq(saved_add(&saver.saver, "reference", &writer, NULL), 0);
    row = memory_saver_read(&saver, saver.n_rows - 1, "reference");
    return death_get(&row, &after);
}

TEST(a_reference_finds_its_report_in_the_log)
{
    struct death *death, *second;

    add_death(1);
    second = add_death(2);
    add_death(3);
    ck_assert_int_eq(death_log_save(&before, &saver.saver), 0);
    restore_all();
    death = refer(second);
    ck_assert_ptr_nonnull(death);
    assert_equal(death, second);
    ck_assert(list_linked(&death->link));
    death_unref(death);
    ck_assert_ptr_null(refer(NULL));
}

TEST(a_report_that_has_left_the_log_goes_with_its_reference)
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

TEST(damaged_reports_do_no_harm)
{
    struct saved_reader row;

    add_death(1);
    ck_assert_int_eq(death_log_save(&before, &saver.saver), 0);
    memory_saver_damage(&saver, 0, restore_damaged, NULL);
    row = memory_saver_read(&saver, 0, DEATH_ROW);
    row.end -= 2;
    ck_assert_int_eq(death_log_restore(&after, &row), -EBADMSG);
}

TEST(latencies_are_restored)
{
    struct latency latency = {0}, restored;
    struct saved_writer writer = {0};
    struct saved_reader row;

    for (usec_t i = 0; i < 3000; i++)
        latency_add(&latency, i * i);
    record_put(&writer, &LATENCY_RECORD, &latency);
    ck_assert_int_eq(saved_add(&saver.saver, "latency", &writer, NULL), 0);
    row = memory_saver_read(&saver, 0, "latency");
    record_get(&row, &LATENCY_RECORD, &restored);
    ck_assert_mem_eq(&restored, &latency, sizeof(latency));
}

const struct suite suite = {.name = "death-save", .setup = setup, .teardown = teardown};
