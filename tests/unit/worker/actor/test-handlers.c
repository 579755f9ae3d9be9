/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"
#include "worker/actor/handlers.h"

static struct handlers handlers;

static int nothing(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    return 0;
}

static void set(const char *type)
{
    ck_assert_int_eq(handlers_set(&handlers, type, nothing, (void *)(uintptr_t)type), 0);
}

/* The type under which the handler of `type` was set; "none". */
static const char *found(const char *type)
{
    const struct handler *handler = handlers_find(&handlers, type);

    return handler ? handler->userdata : "none";
}

static void teardown(void)
{
    handlers_deinit(&handlers);
}

TEST(test_exact_type_comes_before_its_ancestors)
{
    set("order");
    set("order.created");
    set("");
    ck_assert_str_eq(found("order.created"), "order.created");
    ck_assert_str_eq(found("order"), "order");
}

TEST(test_nearest_ancestor_takes_what_has_no_handler_of_its_own)
{
    set("order");
    set("order.created.again");
    ck_assert_str_eq(found("order.created"), "order");
    ck_assert_str_eq(found("order.created.again.and.again"), "order.created.again");
    ck_assert_str_eq(found("order.paid.late"), "order");
}

TEST(test_a_common_beginning_is_not_an_ancestor)
{
    set("order");
    ck_assert_str_eq(found("orders"), "none");
    ck_assert_str_eq(found("orde"), "none");
    ck_assert_str_eq(found("or.der"), "none");
    ck_assert_str_eq(found(""), "none");
}

TEST(test_empty_type_takes_what_is_left)
{
    set("");
    set("order");
    ck_assert_str_eq(found("anything.else"), "");
    ck_assert_str_eq(found(""), "");
}

TEST(test_handler_set_again_is_replaced_and_null_takes_it_away)
{
    set("a");
    ck_assert_int_eq(handlers_set(&handlers, "a", nothing, "second"), 0);
    ck_assert_str_eq(found("a.b"), "second");
    ck_assert_int_eq(handlers_set(&handlers, "a", NULL, NULL), 0);
    ck_assert_int_eq(handlers_set(&handlers, "never", NULL, NULL), 0);
    ck_assert_str_eq(found("a.b"), "none");
    ck_assert_uint_eq(handlers.count, 0);
}

TEST(test_malformed_types_are_refused)
{
    char longest[130];

    memset(longest, 'x', sizeof(longest));
    longest[129] = '\0';
    ck_assert_int_eq(handlers_set(&handlers, "a b", nothing, NULL), -EINVAL);
    ck_assert_int_eq(handlers_set(&handlers, "ä", nothing, NULL), -EINVAL);
    ck_assert_int_eq(handlers_set(&handlers, longest, nothing, NULL), -EINVAL);
    longest[128] = '\0';
    ck_assert_int_eq(handlers_set(&handlers, longest, nothing, "longest"), 0);
    ck_assert_str_eq(found(longest), "longest");
}

TEST(test_each_of_many_is_found)
{
    static char types[500][16];

    for (size_t i = 0; i < 500; i++) {
        snprintf(types[i], sizeof(types[i]), "t%zu.%zu", i * 7919 % 500, i);
        set(types[i]);
    }
    for (size_t i = 0; i < 500; i++)
        ck_assert_str_eq(found(types[i]), types[i]);
    for (size_t i = 0; i < 500; i += 2)
        ck_assert_int_eq(handlers_set(&handlers, types[i], NULL, NULL), 0);
    for (size_t i = 0; i < 500; i++)
        ck_assert_str_eq(found(types[i]), i % 2 == 0 ? "none" : types[i]);
}

const struct suite suite = {.teardown = teardown};
