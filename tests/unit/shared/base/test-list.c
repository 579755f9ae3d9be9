/* SPDX-License-Identifier: MIT */
#include "shared/base/list.h"
#include "tests/unit/suite.h"

struct item {
    int value;
    struct list node;
};

static struct list head;
static struct item items[4];

static void setup(void)
{
    list_init(&head);
    for (int i = 0; i < 4; i++) {
        items[i].value = i;
        list_init(&items[i].node);
    }
}

static int value_of(const struct list *node)
{
    return list_entry(node, struct item, node)->value;
}

/* The values, in order, as decimal digits. */
static int digits(void)
{
    int number = 0;

    list_for_each (node, &head)
        number = number * 10 + value_of(node);
    return number;
}

TEST(a_new_list_is_empty)
{
    struct list fresh = LIST_INIT(fresh);

    ck_assert(list_empty(&head));
    ck_assert(list_empty(&fresh));
    ck_assert_ptr_null(list_first(&head));
}

TEST(nodes_stand_where_they_were_pushed)
{
    list_push_back(&head, &items[2].node);
    list_push_back(&head, &items[3].node);
    list_push_front(&head, &items[1].node);
    ck_assert_int_eq(digits(), 123);
    ck_assert_ptr_eq(list_first(&head), &items[1].node);
    ck_assert(!list_empty(&head));
}

TEST(unlinking_takes_out_just_that_node)
{
    for (int i = 1; i < 4; i++)
        list_push_back(&head, &items[i].node);
    list_unlink(&items[2].node);
    ck_assert_int_eq(digits(), 13);
    ck_assert(!list_linked(&items[2].node));
    ck_assert(list_linked(&items[1].node));
    list_push_front(&head, &items[2].node);
    ck_assert_int_eq(digits(), 213);
}

TEST(unlinking_an_unlinked_node_is_harmless)
{
    list_push_back(&head, &items[1].node);
    list_unlink(&items[0].node);
    list_unlink(&items[0].node);
    ck_assert_int_eq(digits(), 1);
}

TEST(the_current_node_may_go_while_walking)
{
    for (int i = 1; i < 4; i++)
        list_push_back(&head, &items[i].node);
    list_for_each_safe (node, &head) {
        if (value_of(node) != 2)
            list_unlink(node);
    }
    ck_assert_int_eq(digits(), 2);
    list_for_each_safe (node, &head)
        list_unlink(node);
    ck_assert(list_empty(&head));
}

const struct suite suite = {.setup = setup};
