/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-name.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/message-save.h"
#include "tests/unit/message/message-fixture.h"
#include "tests/unit/suite.h"

static void feed(struct actor *actor)
{
}

static const struct actor_class CLASS = {.kind = ACTOR_SLOT, .feed = feed};

static struct actor *make(struct message_context *context, const char *name)
{
    return make_actor(context, &CLASS, name);
}

static struct actor *make_exchange(struct actor *creator, const char *name, enum exchange_kind kind)
{
    struct actor *exchange;

    ck_assert_int_eq(creator ? exchange_actor_make(&exchange, creator, name, kind)
                             : exchange_actor_new(&exchange, &before, name, kind, false),
                     0);
    return exchange;
}

static void subscribe(struct actor *exchange, struct actor *subscriber, const char *type)
{
    const struct topic topic = {
        .type = type, .type_size = (uint32_t)strlen(type), .key = "a.*", .key_size = 3};

    ck_assert_int_eq(
        exchange_subscribe(actor_exchange(exchange), &subscriber->subscriptions, &topic), 0);
}

static void save_all(void)
{
    record_save(&saver.saver, &MESSAGES_RECORD, &before, NULL);
    actors_save_each(&before, &saver.saver, actor_save);
    actors_save_each(&before, &saver.saver, exchange_save);
    ck_assert_int_eq(restore(MESSAGES_RECORD.name, messages_inherit), 0);
    ck_assert_int_eq(restore(ACTOR_ROW, actor_row_restore), 0);
}

static void restore_all(void)
{
    ck_assert_int_eq(restore(EXCHANGE_RECORD.name, exchange_restore_row), 0);
    ck_assert_int_eq(restore(SUBSCRIPTION_ROW, subscription_restore_row), 0);
}

/* The types of an exchange's subscriptions, in their order. */
static const char *types_of(const struct actor *exchange)
{
    static char types[100];
    size_t n = 0;

    list_for_each (node, &actor_exchange(exchange)->subscriptions) {
        const struct topic *topic = &list_entry(node, struct exchange_subscription, link)->topic;

        ck_assert_uint_eq(topic->key_size, 3);
        ck_assert_mem_eq(topic->key, "a.*", 3);
        n += (size_t)snprintf(types + n, sizeof(types) - n, "%.*s ", (int)topic->type_size,
                              topic->type);
    }
    types[n] = '\0';
    return types;
}

TEST(an_exchange_keeps_reference_kind_creator_and_subscriptions_in_their_order)
{
    struct actor *maker = make(&before, "maker"), *other = make(&before, "other");
    struct actor *exchange = make_exchange(maker, "x", EXCHANGE_PATTERN), *again;

    subscribe(exchange, other, "one");
    subscribe(exchange, maker, "two");
    subscribe(exchange, other, "three");
    save_all();
    maker = make(&after, "maker");
    other = make(&after, "other");
    restore_all();
    again = actor_by_name(&after, "x");
    ck_assert_ptr_nonnull(again);
    ck_assert_uint_eq(again->reference, exchange->reference);
    ck_assert_uint_eq(actor_exchange(again)->kind, EXCHANGE_PATTERN);
    ck_assert_uint_eq(actor_exchange(again)->creator, maker->reference);
    ck_assert_ptr_eq(list_first(&maker->made), &again->made_link);
    ck_assert_str_eq(types_of(again), "one two three ");
    ck_assert_uint_eq(other->subscriptions.n_subscriptions, 2);
    ck_assert_uint_eq(actor_exchange(again)->effort, actor_exchange(exchange)->effort);
    ck_assert_uint_eq(other->subscriptions.effort, maker->subscriptions.effort * 2);
}

/* A message that is half copied goes on behind the last one. */
TEST(subscriptions_keep_their_sequence)
{
    struct actor *maker = make(&before, "maker"), *other = make(&before, "other");
    struct actor *exchange = make_exchange(maker, "x", EXCHANGE_TYPED_MULTI), *again;
    const struct topic about = {.type = "one", .type_size = 3};
    struct exchange_match match;

    subscribe(exchange, maker, "gone");
    subscribe(exchange, maker, "one");
    subscribe(exchange, other, "one");
    exchange_unsubscribe(actor_exchange(exchange), &maker->subscriptions,
                         &(struct topic){.type = "gone", .type_size = 4});
    save_all();
    (void)make(&after, "maker");
    other = make(&after, "other");
    restore_all();
    again = actor_by_name(&after, "x");
    ck_assert_uint_eq(exchange_match(actor_exchange(again), &about, 2, &match, 1), 1);
    ck_assert_uint_eq(match.sequence, 3);
    ck_assert_uint_eq(match.actor, other->reference);
}

TEST(the_exchange_of_a_maker_that_is_gone_stays_without_the_subscriptions_of_what_is_gone)
{
    struct actor *maker = make(&before, "maker");
    struct actor *exchange = make_exchange(maker, "x", EXCHANGE_TYPED_MULTI);

    make_exchange(NULL, "administrators", EXCHANGE_TYPED_MULTI);
    subscribe(exchange, maker, "one");
    save_all();
    restore_all();
    exchange = actor_by_name(&after, "x");
    ck_assert_ptr_nonnull(exchange);
    ck_assert_uint_eq(actor_exchange(exchange)->creator, maker->reference);
    ck_assert_str_eq(types_of(exchange), "");
    ck_assert_uint_eq(actor_exchange(actor_by_name(&after, "administrators"))->creator, 0);
}

TEST(the_configuration_has_the_last_word_on_what_it_declares)
{
    struct actor *maker = make(&before, "maker");
    struct actor *exchange = make_exchange(maker, "x", EXCHANGE_TYPED_MULTI), *declared;

    subscribe(exchange, maker, "one");
    subscribe(exchange, maker, "two");
    save_all();
    maker = make(&after, "maker");
    ck_assert_int_eq(exchange_actor_new(&declared, &after, "x", EXCHANGE_SINGLE, true), 0);
    actor_exchange(declared)->declared = true;
    restore_all();
    ck_assert_ptr_eq(actor_by_name(&after, "x"), declared);
    ck_assert_uint_eq(declared->reference, exchange->reference);
    ck_assert_uint_eq(actor_exchange(declared)->kind, EXCHANGE_SINGLE);
    ck_assert_uint_eq(actor_exchange(declared)->creator, 0);
    ck_assert(list_empty(&maker->made));
    ck_assert_str_eq(types_of(declared), "two ");
}

TEST(a_declared_exchange_is_left_to_the_configuration)
{
    struct actor *exchange, *subscriber = make(&before, "subscriber");

    ck_assert_int_eq(exchange_actor_new(&exchange, &before, "x", EXCHANGE_TYPED_MULTI, true), 0);
    actor_exchange(exchange)->declared = true;
    subscribe(exchange, subscriber, "one");
    save_all();
    make(&after, "subscriber");
    restore_all();
    ck_assert_ptr_null(actor_by_name(&after, "x"));
    ck_assert_int_eq(exchange_actor_new(&exchange, &after, "x", EXCHANGE_TYPED_MULTI, true), 0);
    restore_all();
    ck_assert_str_eq(types_of(exchange), "one ");
}

static struct actor *group;

static bool find_group(void *userdata, const char *address, struct actor **ret)
{
    *ret = strcmp(address, group->name) == 0 ? group : NULL;
    return *ret;
}

TEST(an_exchange_whose_name_a_group_has_is_gone_and_the_group_has_another_reference)
{
    struct actor *exchange = make_exchange(make(&before, "maker"), "x", EXCHANGE_SINGLE);
    struct actor *declared;

    ck_assert_int_eq(exchange_actor_new(&declared, &before, "y", EXCHANGE_SINGLE, true), 0);
    save_all();
    after.n_transient = 100; /* another process gives others */
    group = make(&after, "x");
    after.find_in_groups = find_group;
    restore_all();
    ck_assert_ptr_null(actor_by_name(&after, "x"));
    ck_assert_ptr_null(actor_get(&after, exchange->reference));
    ck_assert_uint_ne(make(&after, "y")->reference, declared->reference);
}

TEST(bounds_hold)
{
    struct actor *maker = make(&before, "maker"), *other = make(&before, "other");
    struct actor *exchange = make_exchange(maker, "x", EXCHANGE_TYPED_MULTI);

    subscribe(exchange, other, "one");
    save_all();
    make(&after, "maker");
    other = make(&after, "other");
    after.exchange_shares.used[0] = EXCHANGES_MAX;
    ck_assert_int_eq(restore(EXCHANGE_RECORD.name, exchange_restore_row), -ENOSPC);
    after.exchange_shares.used[0] = 0;
    ck_assert_int_eq(restore(EXCHANGE_RECORD.name, exchange_restore_row), 0);
    other->subscriptions.n_subscriptions = EXCHANGE_PER_ACTOR_MAX;
    ck_assert_int_eq(restore(SUBSCRIPTION_ROW, subscription_restore_row), -ENOSPC);
    other->subscriptions.n_subscriptions = 0;
}

TEST(damaged_rows_are_refused_or_harmless)
{
    struct actor *maker = make(&before, "maker");

    subscribe(make_exchange(maker, "x", EXCHANGE_PATTERN), maker, "one");
    actors_save_each(&before, &saver.saver, exchange_save);
    make(&after, "maker");
    restore_damaged(0, exchange_restore_row);
    restore_damaged(1, subscription_restore_row);
    restore_all();
    restore_damaged(1, subscription_restore_row);
}

TEST(an_exchange_of_a_kind_that_does_not_exist_is_refused)
{
    struct saved_writer row = {0};

    saved_put_text(&row, "x");
    saved_put_number(&row, _EXCHANGE_N_KINDS);
    saved_put_number(&row, 0);
    saved_add(&saver.saver, EXCHANGE_RECORD.name, &row, NULL);
    ck_assert_int_eq(restore(EXCHANGE_RECORD.name, exchange_restore_row), -EBADMSG);
    ck_assert_ptr_null(actor_by_name(&after, "x"));
}

TEST(a_subscription_to_what_is_no_exchange_is_refused)
{
    struct actor *subscriber = make(&after, "subscriber");
    const struct topic topic = {.type = "t", .type_size = 1};
    struct saved_writer row = {0};

    saved_put_number(&row, subscriber->reference);
    saved_put_number(&row, subscriber->reference);
    topic_put(&row, &topic);
    saved_add(&saver.saver, SUBSCRIPTION_ROW, &row, NULL);
    ck_assert_int_eq(restore(SUBSCRIPTION_ROW, subscription_restore_row), -EBADMSG);
}

const struct suite suite = {.setup = set_up_upgrade, .teardown = tear_down_upgrade};
