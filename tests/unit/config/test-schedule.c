/* SPDX-License-Identifier: MIT */
#include "shared/protocol/protocol.h"
#include "tests/unit/config-directory.h"
#include "tests/unit/suite.h"

#define DAILY "[Schedule]\nOnCalendar=daily\n"

static const struct config_schedule *load_schedule(const char *text)
{
    write_group("a", "");
    write_file("a.schedule", text);
    struct config *config = load();
    ck_assert_uint_eq(config->files[CONFIG_SCHEDULE].n, 1);
    return config->files[CONFIG_SCHEDULE].all[0];
}

static const char *problems_of(const char *name, const char *text)
{
    write_group("a", "");
    write_file(name, text);
    return load_problems();
}

TEST(a_schedule_has_the_group_of_its_name_and_leaves_options_to_it)
{
    const struct config_schedule *schedule = load_schedule(DAILY);
    size_t size;

    ck_assert_str_eq(schedule->name, "a");
    ck_assert_str_eq(config_schedule_group(schedule), "a");
    ck_assert_str_eq(schedule->on_calendar.strings[0], "daily");
    ck_assert_int_eq(schedule->catch_up, CONFIG_CATCH_UP_LAST);
    ck_assert_uint_eq(schedule->catch_up_within, 24 * 3600 * USEC_PER_SEC);
    ck_assert_int_eq(schedule->overlap, CONFIG_OVERLAP_SKIP);
    ck_assert_uint_eq(schedule->on_active, USEC_INFINITY);
    ck_assert_uint_eq(schedule->max_retries, PROTOCOL_DEFAULT_RETRIES);
    ck_assert_uint_eq((uint8_t)schedule->priority, PROTOCOL_DEFAULT_PRIORITY);
    ck_assert_uint_eq(schedule->timeout, PROTOCOL_DEFAULT_USEC);
    ck_assert_uint_eq(schedule->backoff_min, PROTOCOL_DEFAULT_USEC);
    (void)config_schedule_data(schedule, &size);
    ck_assert_uint_eq(size, 0);
}

TEST(a_schedule_has_the_options_of_a_job)
{
    write_file("data", "one\ntwo\n");
    char text[4096];
    snprintf(text, sizeof(text),
             "[Schedule]\nOnCalendar=Mon..Fri 09:00 UTC\nOnCalendar=0 9 * * *\n"
             "OnUnitActiveSec=1h\nUntil=2030-01-01 UTC\nOverlap=buffer-one\nCatchUp=none\n"
             "PauseOnFailure=3\n[Job]\nGroup=a\nKey=k\nPriority=3\nMaxRetries=0\nTimeoutSec=1min\n"
             "DeadlineSec=1h\nDataFile=%s/data\n",
             config_test_directory);
    const struct config_schedule *schedule = load_schedule(text);
    size_t size;

    ck_assert_uint_eq(schedule->on_calendar.n, 2);
    ck_assert_int_eq(schedule->overlap, CONFIG_OVERLAP_BUFFER_ONE);
    ck_assert_int_eq(schedule->catch_up, CONFIG_CATCH_UP_NONE);
    ck_assert_uint_eq(schedule->pause_on_failure, 3);
    ck_assert_uint_eq(schedule->priority, 3);
    ck_assert_uint_eq(schedule->max_retries, 0);
    ck_assert_uint_eq(schedule->timeout, 60 * USEC_PER_SEC);
    ck_assert_mem_eq(config_schedule_data(schedule, &size), "one\ntwo\n", 8);
    ck_assert_uint_eq(size, 8);
}

TEST(a_calendar_expression_is_checked)
{
    ck_assert_str_eq(problems_of("a.schedule", "[Schedule]\nOnCalendar=*-02-30\n"),
                     "a.schedule:2: OnCalendar=*-02-30: never comes; allowed: a calendar "
                     "expression such as \"Mon..Fri 09:00 Europe/Berlin\", daily, or the five "
                     "fields of cron\n");
    ck_assert_ptr_nonnull(strstr(problems_of("a.schedule", "[Schedule]\nOnCalendar=25:00\n"),
                                 "a.schedule:2: OnCalendar=25:00: column 1: the hour"));
    ck_assert_ptr_nonnull(
        strstr(problems_of("a.schedule", DAILY "Until=daily\n"), "Until=daily: comes more than"));
}

TEST(a_schedule_has_a_bounded_number_of_calendars)
{
    char text[sizeof("[Schedule]\n") + 101 * sizeof("OnCalendar=daily\n")];
    char *at = stpcpy(text, "[Schedule]\n");

    for (unsigned i = 0; i < 101; i++)
        at = stpcpy(at, "OnCalendar=daily\n");
    ck_assert_str_eq(
        problems_of("a.schedule", text),
        "a.schedule:102: more than 100 lines of OnCalendar=; allowed: several schedules\n");
}

TEST(a_misspelt_key_has_a_suggestion)
{
    ck_assert_str_eq(problems_of("a.schedule", DAILY "Overlapp=skip\n"),
                     "a.schedule:3: unknown key 'Overlapp' in [Schedule]; did you mean "
                     "'Overlap'?\n");
}

TEST(a_schedule_needs_times)
{
    ck_assert_str_eq(
        problems_of("a.schedule", "[Job]\nGroup=a\n"),
        "a.schedule:0: [Schedule] has no times; allowed: OnCalendar=, OnUnitActiveSec= or "
        "OnUnitInactiveSec=\n");
    ck_assert_str_eq(problems_of("a.schedule", "[Schedule]\nOnUnitActiveSec=1500ms\n"),
                     "a.schedule:2: OnUnitActiveSec= is not a whole number of seconds\n");
}

TEST(the_group_of_a_schedule_exists_and_takes_its_jobs)
{
    ck_assert_str_eq(problems_of("a.schedule", DAILY "[Job]\nGroup=b\n"),
                     "a.schedule:4: Group=b: unknown group; allowed: names of NAME.group files\n");
    write_group("s", "Type=service\n");
    ck_assert_ptr_nonnull(
        strstr(problems_of("a.schedule", DAILY "[Job]\nGroup=s\n"), "Group=s is a service"));
    write_group("k", "[Pool]\nCells=by-key\n");
    ck_assert_ptr_nonnull(
        strstr(problems_of("a.schedule", DAILY "[Job]\nGroup=k\n"), "Key= is missing in [Job]"));
}

TEST(the_data_has_one_source)
{
    ck_assert_ptr_nonnull(
        strstr(problems_of("a.schedule", DAILY "[Job]\nData=x\nDataFile=/x\n"), "beside Data="));
    ck_assert_ptr_nonnull(strstr(problems_of("a.schedule", DAILY "[Job]\nDataFile=/none\n"),
                                 "DataFile=/none cannot be read: No such file or directory; "
                                 "allowed: a readable file of up to 1M"));
}

TEST(a_name_leaves_room_for_the_time)
{
    ck_assert_ptr_nonnull(strstr(problems_of("a@b.schedule", DAILY), "not a possible name"));
    ck_assert_ptr_nonnull(
        strstr(problems_of("a2345678901234567890123456789012345678901234.schedule", DAILY),
               "not a possible name of a schedule; allowed: up to 43 characters"));
}

TEST(a_bad_schedule_is_missing_and_groups_are_not)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = NULL;

    write_group("a", "");
    write_file("a.schedule", "[Schedule]\nOnCalendar=never\n");
    write_file("b.schedule", DAILY "[Job]\nGroup=a\n");
    ck_assert_int_eq(config_read(&config, config_test_directory, &problems), CONFIG_E_INVALID);
    ck_assert_uint_eq(config->n_groups, 1);
    ck_assert(!config->groups[0]->unread);
    ck_assert_uint_eq(config->files[CONFIG_SCHEDULE].n, 1);
    ck_assert_ptr_eq(config_find_file(config, CONFIG_SCHEDULE, "b"),
                     config->files[CONFIG_SCHEDULE].all[0]);
    ck_assert_ptr_null(config_find_file(config, CONFIG_SCHEDULE, "a"));
    config_free(config);
    config_problems_deinit(&problems);
}

TEST(a_file_is_verified_by_itself)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;

    write_file("x.schedule", DAILY);
    ck_assert_int_eq(config_verify_file("x.schedule", &problems), CONFIG_E_INVALID);
    ck_assert_ptr_nonnull(strstr(describe(&problems), "Group=x (the default): unknown group"));
    config_problems_deinit(&problems);
    write_group("x", "");
    ck_assert_int_eq(config_verify_file("x.schedule", &problems), 0);
}

TEST(schedules_that_differ_are_not_equal)
{
    const struct config_schedule *a = load_schedule(DAILY);
    const struct config_schedule *b = load_schedule(DAILY "[Job]\nData=x\n");

    ck_assert(config_schedule_equal(a, a));
    ck_assert(!config_schedule_equal(a, b));
}

const struct suite suite = {.setup = config_test_enter, .teardown = config_test_leave};
