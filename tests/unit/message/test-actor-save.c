/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/message-save.h"
#include "tests/unit/message/message-fixture.h"
#include "tests/unit/suite.h"

static void feed(struct actor *actor)
{
}

static const struct actor_class CLASS = {.kind = ACTOR_SLOT, .feed = feed};

static struct actor *make(struct message_context *context, const char *name, bool transient)
{
    const struct actor_options options = {.class = &CLASS, .name = name, .transient = transient};
    struct actor *actor;

    ck_assert_int_eq(actor_new(&actor, context, &options), 0);
    return actor;
}

static void upgrade(void)
{
    record_save(&saver.saver, &MESSAGES_RECORD, &before, NULL);
    actors_save_each(&before, &saver.saver, actor_save);
    ck_assert_int_eq(restore(MESSAGES_RECORD.name, messages_inherit), 0);
    ck_assert_int_eq(restore(ACTOR_ROW, actor_row_restore), 0);
}

TEST(an_actor_that_is_made_again_has_the_same_reference)
{
    struct actor *first = make(&before, "group/0", false);
    const uint64_t former = first->reference;
    struct actor *again, *transient = make(&before, "exchange", true);

    actor_end(first, "");
    again = make(&before, "group/0", false); /* after its end: another reference */
    upgrade();
    ck_assert_uint_ne(again->reference, former);
    ck_assert_uint_eq(make(&after, "group/0", false)->reference, again->reference);
    ck_assert_uint_eq(make(&after, "exchange", true)->reference, transient->reference);
    actors_settle(&after);
    ck_assert_ptr_null(actor_get(&after, former));
    ck_assert_uint_ne(make(&after, "exchange", true)->reference, transient->reference);
}

TEST(a_standby_gets_the_reference_of_its_predecessor_whatever_comes_first)
{
    struct actor *standby, *place;

    /* Its place ends in the table behind it. */
    place = make(&before, "other", false);
    standby = make(&before, "group/0", true);
    actor_end(place, "");
    place = make(&before, "group/0", false);
    actor_set_place(standby, place);
    upgrade();
    ck_assert_uint_eq(make(&after, "group/0", false)->reference, place->reference);
    ck_assert_uint_eq(make(&after, "group/0", false)->reference, standby->reference);
}

TEST(the_reference_of_an_actor_that_is_gone_is_never_used_again)
{
    struct actor *ended = make(&before, "ended", false), *dropped = make(&before, "dropped", false);
    const uint64_t reference = ended->reference;

    actor_end(ended, "");
    upgrade();
    actors_settle(&after);
    ck_assert_uint_ne(make(&after, "ended", false)->reference, reference);
    ck_assert_uint_ne(make(&after, "dropped", false)->reference, dropped->reference);
    ck_assert_ptr_null(actor_get(&after, reference));
    ck_assert_ptr_null(actor_get(&after, dropped->reference));
}

TEST(a_name_that_something_else_has_now_is_lost)
{
    ck_assert_int_eq(actor_register(make(&before, "group/0", false), "bob"), 0);
    struct actor *bob = make(&after, "group/0", false);
    struct actor *owner = make(&after, "other", false);
    ck_assert_int_eq(actor_register(owner, "bob"), 0);
    actors_save_each(&before, &saver.saver, actor_names_save);
    ck_assert_int_eq(restore(ACTOR_NAME_RECORD.name, actor_name_restore_row), 0);
    ck_assert_ptr_eq(actor_by_name(&after, "bob"), owner);
    ck_assert_uint_eq(bob->n_names, 0);
}

TEST(damaged_names_are_refused_or_harmless)
{
    ck_assert_int_eq(actor_register(make(&before, "group/0", false), "bob"), 0);
    make(&after, "group/0", false);
    actors_save_each(&before, &saver.saver, actor_names_save);
    restore_damaged(0, actor_name_restore_row);
}

TEST(damaged_rows_are_refused_or_harmless)
{
    make(&before, "group/0", false);
    record_save(&saver.saver, &MESSAGES_RECORD, &before, NULL);
    actors_save_each(&before, &saver.saver, actor_save);
    restore_damaged(0, messages_inherit);
    restore_damaged(1, actor_row_restore);
    make(&after, "group/0", false);
    actors_settle(&after);
}

TEST(an_actor_that_messages_or_others_count_on_is_saved_as_needed)
{
    ck_assert_int_eq(actor_register(make(&before, "a", false), "x"), 0);
    (void)make(&before, "b", false);
    record_save(&saver.saver, &MESSAGES_RECORD, &before, NULL);
    actors_save_each(&before, &saver.saver, actor_save);
    for (size_t i = 1; i <= 2; i++) {
        struct saved_reader row = memory_saver_read(&saver, i, ACTOR_ROW);
        struct actor_row actor;

        ck_assert_int_eq(actor_row_read(&row, &actor), 0);
        ck_assert_int_eq(actor.needed, strcmp(actor.name, "a") == 0);
    }
}

const struct suite suite = {.setup = set_up_upgrade, .teardown = tear_down_upgrade};
