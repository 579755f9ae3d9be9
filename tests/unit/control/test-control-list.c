/* SPDX-License-Identifier: MIT */

/* Tests that lists in pages are complete whatever changes meanwhile, and take many turns. */

#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "tests/unit/control/calls.h"
#include "tests/unit/control/letters.h"

static void send_list(const char *method, const char *extra, json_int_t cursor, int limit)
{
    char text[256];

    snprintf(text, sizeof(text),
             "{\"method\":\"io.troupe.%s\",\"parameters\":{%s\"cursor\":%lld,\"limit\":%d}}",
             method, extra, (long long)cursor, limit);
    fake_send(client, text);
}

/* Lists all pages. Returns the number of items; `*turns` is what it took. */
static size_t count_items(const char *method, const char *extra, const char *array, int limit,
                          unsigned *turns)
{
    json_int_t cursor = 0;
    size_t n = 0;

    count_turns();
    do {
        send_list(method, extra, cursor, limit);
        json_t *page = parameters_of(fake_receive(client));
        ck_assert_uint_le(json_array_size(json_object_get(page, array)), (size_t)limit);
        n += json_array_size(json_object_get(page, array));
        cursor = json_integer_value(json_object_get(page, "next"));
    } while (cursor != 0);
    *turns = counted_turns();
    return n;
}

/* Until the list is being written, and not yet complete. */
static void run_into(const struct list *cursors)
{
    while (list_empty(cursors))
        fake_turns(1);
}

static void check_list(const char *method, const char *extra, const char *array)
{
    unsigned turns;

    ck_assert_uint_eq(count_items(method, extra, array, 1000, &turns), MANY);
    check_turns(turns, MANY, MANY / 1000);
    ck_assert_uint_eq(count_items(method, extra, array, 7, &turns), MANY);
}

static void make_jobs(void)
{
    fake_group->config->queue_max = 2 * MANY;
    for (int i = 0; i < MANY; i++)
        check_done(JOBS("Create", "{\"group\":\"test\"}"));
}

TEST(jobs_are_listed_page_by_page_over_many_turns)
{
    unsigned turns;

    make_jobs();
    check_list("Jobs.List", "", "jobs");
    check_list("Jobs.List", "\"group\":\"test\",\"state\":\"queued\",", "jobs");
    ck_assert_uint_eq(count_items("Jobs.List", "\"state\":\"running\",", "jobs", 1000, &turns), 0);
    check_turns(turns, MANY, 1);
}

TEST(timers_are_listed_page_by_page_over_many_turns)
{
    for (int i = 0; i < MANY; i++)
        check_done(ACTORS("Schedule", "{\"to\":\"test\",\"delay_usec\":3600000000}"));
    check_list("Actors.ListTimers", "\"to\":\"test\",", "timers");
}

static struct actor *make_exchange(void)
{
    struct actor *exchange;

    ck_assert_int_eq(
        exchange_actor_new(&exchange, &fake_parts.messages, "x", EXCHANGE_TYPED_MULTI, false), 0);
    return exchange;
}

static void subscribe(struct exchange *exchange, struct exchange_subscriber *subscriber, int i)
{
    char type[16], key[200];
    struct topic topic = {.type = type, .key = key, .key_size = sizeof(key)};

    memset(key, 'k', sizeof(key));
    topic.type_size = (uint32_t)snprintf(type, sizeof(type), "t%d", i);
    ck_assert_int_eq(exchange_subscribe(exchange, subscriber, &topic), 0);
}

TEST(subscriptions_are_listed_page_by_page_over_many_turns)
{
    struct actor *exchange = make_exchange();

    for (int i = 0; i < MANY; i++)
        subscribe(actor_exchange(exchange), &fake_group->cell->pool.actor->subscriptions, i);
    check_list("Actors.ListSubscriptions", "\"exchange\":\"x\",", "subscriptions");
}

TEST(an_exchange_that_goes_in_the_middle_ends_the_list_of_its_subscriptions)
{
    struct actor *exchange = make_exchange();

    for (int i = 0; i < MANY; i++)
        subscribe(actor_exchange(exchange), &fake_group->cell->pool.actor->subscriptions, i);
    slow_down();
    send_list("Actors.ListSubscriptions", "\"exchange\":\"x\",", 0, 1000);
    run_into(&actor_exchange(exchange)->cursors);
    actor_end(exchange, "deleted");
    parameters_of(fake_receive(client));
}

TEST(dead_letters_are_listed_page_by_page_over_many_turns)
{
    add_letters(DEAD_GONE, MANY / 2);
    add_letters(DEAD_ERROR, MANY / 4);
    add_letters(DEAD_LOOP, MANY / 4);
    check_list("Actors.ListDeadLetters", "", "letters");
}

TEST(another_client_is_answered_while_a_list_is_written)
{
    const struct list *cursors = &fake_parts.messages.dead_letters.cursors;
    struct fake_client *other = fake_connect();

    add_letters(DEAD_GONE, MANY);
    slow_down();
    send_list("Actors.ListDeadLetters", "\"filter\":{\"queue\":\"errors\"},", 0, 1000);
    run_into(cursors);
    fake_ask(other, SUPERVISOR("GetInfo", "{}"));
    ck_assert(!list_empty(cursors));
    parameters_of(fake_receive(client));
    fake_disconnect(other);
}

/* Messages are evicted while they are listed: those at the cursor too, and in whatever order. */
TEST(dead_letters_that_go_while_they_are_listed_take_nothing_along)
{
    struct dead_letters *letters = &fake_parts.messages.dead_letters;
    uint64_t expected = 0;

    add_letters(DEAD_GONE, 900);
    slow_down();
    send_list("Actors.ListDeadLetters", "", 0, 1000);
    run_into(&fake_parts.messages.dead_letters.cursors);
    for (uint64_t id = 1; id <= 900; id++) {
        struct dead_letter *letter = dead_letter_find(letters, id);

        if (id % 3 == 0) {
            dead_letter_take(letters, letter);
            dead_letter_free(letter);
        } else {
            expected++;
        }
    }
    json_t *page = parameters_of(fake_receive(client));
    ck_assert_uint_ge(json_array_size(json_object_get(page, "letters")), expected);
}

TEST(who_goes_in_the_middle_of_a_list_leaves_nothing_behind)
{
    struct fake_client *other = fake_connect(), *first = client;

    add_letters(DEAD_GONE, MANY);
    slow_down();
    client = other;
    send_list("Actors.ListDeadLetters", "", 0, 1000);
    run_into(&fake_parts.messages.dead_letters.cursors);
    fake_disconnect(other);
    client = first;
    fake_settle();
    ck_assert(list_empty(&fake_parts.messages.dead_letters.cursors));
}

const struct suite suite = {.setup = connect_client, .teardown = disconnect_client};
