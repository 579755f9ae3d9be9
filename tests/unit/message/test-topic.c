/* SPDX-License-Identifier: MIT */
#include "shared/protocol/topic.h"
#include "tests/unit/suite.h"

static bool valid(const char *type)
{
    return topic_type_valid(type, strlen(type));
}

static bool is_a(const char *type, const char *ancestor)
{
    return topic_type_is_a(type, (uint32_t)strlen(type), ancestor, (uint32_t)strlen(ancestor));
}

TEST(types_are_names_with_dots_and_may_be_empty)
{
    ck_assert(valid("order.created"));
    ck_assert(valid(""));
    ck_assert(valid("A-z_0.9"));
    ck_assert(!valid("order created"));
    ck_assert(!valid("order/created"));
    ck_assert(!valid("\303\244"));
}

TEST(a_type_has_at_most_128_characters)
{
    char type[TOPIC_TYPE_MAX + 1];

    memset(type, 'a', sizeof(type));
    ck_assert(topic_type_valid(type, TOPIC_TYPE_MAX));
    ck_assert(!topic_type_valid(type, TOPIC_TYPE_MAX + 1));
}

TEST(parents_lead_up_to_the_empty_type)
{
    const char *type = "a.bc.d";
    uint32_t size = 6;

    ck_assert(topic_type_parent(type, &size));
    ck_assert_uint_eq(size, 4);
    ck_assert(topic_type_parent(type, &size));
    ck_assert_uint_eq(size, 1);
    ck_assert(topic_type_parent(type, &size));
    ck_assert_uint_eq(size, 0);
    ck_assert(!topic_type_parent(type, &size));
    ck_assert_uint_eq(size, 0);
}

TEST(a_parent_is_cut_off_at_a_dot_also_where_dots_stand_oddly)
{
    const char *type = "..a.";
    uint32_t size = 4;

    ck_assert(topic_type_parent(type, &size));
    ck_assert_uint_eq(size, 3); /* "..a" */
    ck_assert(topic_type_parent(type, &size));
    ck_assert_uint_eq(size, 1); /* "." */
    ck_assert(topic_type_parent(type, &size));
    ck_assert_uint_eq(size, 0);
}

TEST(every_type_is_itself_and_its_ancestors)
{
    ck_assert(is_a("order.created", "order.created"));
    ck_assert(is_a("order.created", "order"));
    ck_assert(is_a("order.created", ""));
    ck_assert(is_a("", ""));
    ck_assert(!is_a("order", "order.created"));
    ck_assert(!is_a("orders", "order"));
    ck_assert(!is_a("", "order"));
}

TEST(topics_are_ordered_by_type_then_key_and_no_key_is_not_an_empty_one)
{
    const struct topic none = {.type = "a", .type_size = 1};
    const struct topic empty = {.type = "a", .type_size = 1, .key = ""};
    const struct topic key = {.type = "a", .type_size = 1, .key = "k", .key_size = 1};
    const struct topic longer = {.type = "a.b", .type_size = 3};

    ck_assert_int_eq(topic_compare(&none, &none), 0);
    ck_assert_int_lt(topic_compare(&none, &empty), 0);
    ck_assert_int_gt(topic_compare(&empty, &none), 0);
    ck_assert_int_lt(topic_compare(&empty, &key), 0);
    ck_assert_int_eq(topic_compare(&key, &key), 0);
    ck_assert_int_lt(topic_compare(&key, &longer), 0);
}
