/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"

__attribute__((weak)) const struct suite suite = {0};

static struct suite_test *first, **end = &first;

void suite_add(struct suite_test *test)
{
    *end = test;
    end = &test->next;
}

bool under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload");
}

static void add_case(Suite *check, const struct suite_test *test, SFun setup, SFun teardown)
{
    TCase *tcase = tcase_create(test->check->name);

    if (test->unchecked)
        tcase_add_unchecked_fixture(tcase, setup, teardown);
    else
        tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, SUITE_TIMEOUT);
    _tcase_add_test(tcase, test->check, test->signal, test->status, test->first,
                    test->first + (test->n > 0 ? test->n : 1));
    suite_add_tcase(check, tcase);
}

static void setup_futex(void)
{
    suite.setup_with(WAKE_FUTEX);
}

static void setup_eventfd(void)
{
    suite.setup_with(WAKE_EVENTFD);
}

static void add_test(Suite *check, const struct suite_test *test)
{
    if (test->native && under_valgrind())
        return;
    if (test->bare || test->setup || test->teardown) {
        add_case(check, test, test->setup, test->teardown);
        return;
    }
    if (!suite.setup_with)
        add_case(check, test, suite.setup, suite.teardown);
    if (suite.other_setup)
        add_case(check, test, suite.other_setup, suite.teardown);
    if (suite.setup_with && test->only != WAKE_EVENTFD)
        add_case(check, test, setup_futex, suite.teardown);
    if (suite.setup_with && test->only != WAKE_FUTEX)
        add_case(check, test, setup_eventfd, suite.teardown);
}

int main(int argc, char **argv)
{
    if (argc == 2 && suite.argument && strcmp(argv[1], suite.argument) == 0)
        return suite.with_argument();
    Suite *check = suite_create(program_invocation_short_name);
    SRunner *runner = srunner_create(check);
    for (const struct suite_test *test = first; test; test = test->next)
        add_test(check, test);
    srunner_run_all(runner, CK_ENV);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
