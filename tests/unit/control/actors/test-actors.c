/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: long lists, and changes of many things, over many turns of the loop. */

#include "tests/unit/control/calls.h"
#include "tests/unit/control/letters.h"

TEST(four_thousand_actors_are_listed_over_many_turns)
{
    json_t *answer;

    unsigned few = turns_of(ACTORS("ListActors", "{\"limit\":1000}"), &answer);
    ck_assert_int_eq(group_resize(fake_group, 4096), 0);
    ck_assert_uint_ge(turns_of(ACTORS("ListActors", "{\"limit\":1000}"), &answer), few + 4);
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "actors")), 1000);
    ck_assert_int_gt(json_integer_value(json_object_get(answer, "next")), 0);
}

/* Makes a call that changes `n` of MANY items, as `member` of its reply tells, over many turns. */
static void check_changes(const char *call, const char *member, json_int_t n)
{
    json_t *reply;

    check_turns(turns_of(call, &reply), MANY, 1);
    ck_assert_int_eq(json_integer_value(json_object_get(reply, member)), n);
}

TEST(dead_letters_are_purged_over_many_turns)
{
    add_letters(DEAD_GONE, MANY);
    add_letters(DEAD_ERROR, 1);
    check_changes(ACTORS("Purge", "{\"filter\":{\"queue\":\"errors\"}}"), "purged", 1);
    check_changes(ACTORS("Purge", "{\"filter\":{}}"), "purged", MANY);
}

TEST(dead_letters_are_chosen_by_the_name_of_their_reason)
{
    char filter[128];

    for (int i = 0; i < _DEAD_N_REASONS; i++)
        add_letters((enum dead_letter_reason)i, 1);
    for (int i = 0; i < _DEAD_N_REASONS; i++) {
        snprintf(filter, sizeof(filter), ACTORS("Purge", "{\"filter\":{\"reason\":\"%s\"}}"),
                 dead_letter_reason_to_string((enum dead_letter_reason)i));
        check_done(filter);
        ck_assert_ptr_null(dead_letter_find(&fake_parts.messages.dead_letters, (uint64_t)i + 1));
    }
    check_refused("BadOption", "option", "reason",
                  ACTORS("Purge", "{\"filter\":{\"reason\":\"bored\"}}"));
}

TEST(a_filter_that_would_match_more_than_it_says_is_refused)
{
    add_letters(DEAD_GONE, 1);
    check_refused("BadOption", "allowed", "1 or more",
                  ACTORS("Purge", "{\"filter\":{\"until_at\":0}}"));
    check_refused("BadOption", "option", "key",
                  ACTORS("Purge", "{\"filter\":{\"key\":\"a\\u0000b\"}}"));
    ck_assert_int_eq(
        json_integer_value(json_object_get(ask(ACTORS("Purge", "{\"filter\":{}}")), "purged")), 1);
}

TEST(dead_letters_are_requeued_over_many_turns_and_once_each)
{
    add_letters(DEAD_GONE, MANY);
    check_changes(ACTORS("Requeue", "{\"filter\":{}}"), "failed", MANY);
    check_changes(ACTORS("Requeue", "{\"filter\":{},\"to\":\"test\"}"), "requeued", MANY);
}

TEST(timers_of_one_type_are_cancelled_over_many_turns)
{
    for (int i = 0; i < MANY; i++)
        check_done(ACTORS("Schedule", "{\"to\":\"test\",\"delay_usec\":3600000000}"));
    check_changes(ACTORS("Unschedule", "{\"to\":\"test\",\"type\":\"\"}"), "cancelled", MANY);
}

TEST(a_oneway_purge_is_carried_out)
{
    add_letters(DEAD_GONE, MANY);
    fake_send(client, ONEWAY("io.troupe.Actors.Purge", "{\"filter\":{}}"));
    check_done(SUPERVISOR("GetInfo", "{}"));
    ck_assert_ptr_null(dead_letter_find(&fake_parts.messages.dead_letters, MANY));
}

const struct suite suite = {.setup = connect_client, .teardown = disconnect_client};
