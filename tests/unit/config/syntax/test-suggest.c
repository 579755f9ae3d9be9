/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/suggest.h"
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

static const char *const VERBS[] = {"status", "start", "stop", "restart", "reset", "reload", NULL};

START_TEST(equal_words_are_no_steps_apart)
{
    ck_assert_uint_eq(suggest_distance("Size", "Size"), 0);
    ck_assert_uint_eq(suggest_distance("", ""), 0);
}
END_TEST

START_TEST(case_does_not_count)
{
    ck_assert_uint_eq(suggest_distance("execstart", "ExecStart"), 0);
}
END_TEST

START_TEST(inserting_leaving_out_replacing_and_swapping_is_one_step_each)
{
    ck_assert_uint_eq(suggest_distance("stop", "stopp"), 1);
    ck_assert_uint_eq(suggest_distance("stop", "sto"), 1);
    ck_assert_uint_eq(suggest_distance("stop", "stip"), 1);
    ck_assert_uint_eq(suggest_distance("stop", "sotp"), 1);
    ck_assert_uint_eq(suggest_distance("", "stop"), 4);
    ck_assert_uint_eq(suggest_distance("kitten", "sitting"), 3);
}
END_TEST

START_TEST(overlong_words_are_near_to_nothing)
{
    char word[SUGGEST_WORD_MAX + 2];

    for (size_t i = 0; i < sizeof(word) - 1; i++)
        word[i] = 'a';
    word[sizeof(word) - 1] = '\0';
    ck_assert_uint_eq(suggest_distance(word, word), SIZE_MAX);
    ck_assert_uint_eq(suggest_distance("a", word), SIZE_MAX);
    ck_assert_ptr_null(suggest_nearest(word, VERBS));
    word[SUGGEST_WORD_MAX] = '\0';
    ck_assert_uint_eq(suggest_distance(word, word), 0);
}
END_TEST

START_TEST(the_nearest_word_is_found)
{
    ck_assert_str_eq(suggest_nearest("statsu", VERBS), "status");
    ck_assert_str_eq(suggest_nearest("resart", VERBS), "restart");
    ck_assert_str_eq(suggest_nearest("relaod", VERBS), "reload");
    ck_assert_str_eq(suggest_nearest("STOP", VERBS), "stop");
}
END_TEST

START_TEST(of_several_the_first_one_is_taken)
{
    static const char *const words[] = {"boat", "coat", NULL};

    ck_assert_str_eq(suggest_nearest("goat", words), "boat");
}
END_TEST

START_TEST(far_words_are_not_suggested)
{
    static const char *const one[] = {"a", NULL}, *const none[] = {NULL};

    ck_assert_ptr_null(suggest_nearest("banana", VERBS));
    ck_assert_ptr_null(suggest_nearest("", VERBS));
    ck_assert_ptr_null(suggest_nearest("b", one));
    ck_assert_ptr_null(suggest_nearest("status", none));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("suggest");
    TCase *tcase = tcase_create("suggest");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tcase, equal_words_are_no_steps_apart);
    tcase_add_test(tcase, case_does_not_count);
    tcase_add_test(tcase, inserting_leaving_out_replacing_and_swapping_is_one_step_each);
    tcase_add_test(tcase, overlong_words_are_near_to_nothing);
    tcase_add_test(tcase, the_nearest_word_is_found);
    tcase_add_test(tcase, of_several_the_first_one_is_taken);
    tcase_add_test(tcase, far_words_are_not_suggested);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
