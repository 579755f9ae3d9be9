/* SPDX-License-Identifier: MIT */
#include "shared/base/log.h"
#include "tests/unit/config-directory.h"
#include "tests/unit/suite.h"

TEST(an_empty_directory_is_a_configuration)
{
    struct config *config = load();

    ck_assert_uint_eq(config->n_groups, 0);
    ck_assert_ptr_null(config->daemon.admin_group);
    ck_assert_uint_eq(config->daemon.clients_max, 256);
    ck_assert_uint_eq(config->daemon.spin, 50);
    ck_assert_uint_eq(config->daemon.client_idle, USEC_INFINITY);
    ck_assert_uint_eq(config->daemon.deaths_max, 1000);
    ck_assert_uint_eq(config->daemon.dead_letters_max, 10000);
    ck_assert_uint_eq(config->daemon.dead_letters_memory_max, 64 << 20);
    ck_assert_uint_eq(config->daemon.timeout_stop, 30 * USEC_PER_SEC);
    ck_assert_int_eq(config->daemon.log_level, LOG_LEVEL_INFO);
}

TEST(a_missing_directory_is_an_error)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = NULL;

    ck_assert_int_eq(config_load(&config, "missing", &problems), -ENOENT);
    ck_assert_uint_eq(problems.n_problems, 0);
    ck_assert_ptr_null(config);
}

TEST(groups_are_sorted_by_name)
{
    write_group("b", "");
    write_group("a-b", "");
    write_group("a", "");
    write_group("a.b", "");
    write_file(".hidden.group", "nonsense");
    write_file("README", "nonsense");
    struct config *config = load();
    ck_assert_uint_eq(config->n_groups, 4);
    ck_assert_str_eq(config->groups[0]->name, "a");
    ck_assert_str_eq(config->groups[1]->name, "a-b");
    ck_assert_str_eq(config->groups[2]->name, "a.b");
    ck_assert_str_eq(config->groups[3]->name, "b");
}

/* ---- drop-ins ---- */

TEST(dropins_override_in_the_order_of_their_names_and_lists_grow)
{
    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/20-b.conf", "[Pool]\nSize=3\n[Group]\nEnvironment=B=2 C=3\n");
    write_file("a.group.d/10-a.conf", "[Pool]\nSize=2\nMaxJobs=8\n[Group]\nEnvironment=A=9\n");
    write_file("a.group.d/30-c.txt", "nonsense");
    write_file("a.group.d/.hidden.conf", "nonsense");
    struct config_group *group = load_group("Environment=A=1\n[Pool]\nSize=1\n");
    ck_assert_uint_eq(group->size.low, 3);
    ck_assert_uint_eq(group->max_jobs, 8);
    ck_assert_uint_eq(group->environment.n, 3);
    ck_assert_str_eq(group->environment.strings[0], "A=9");
    ck_assert_str_eq(group->environment.strings[1], "B=2");
    ck_assert_str_eq(group->environment.strings[2], "C=3");
}

TEST(an_empty_assignment_in_a_dropin_empties_a_list)
{
    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/a.conf", "[Group]\nEnvironment=\nEnvironment=B=2\n");
    struct config_group *group = load_group("Environment=A=1\n");
    ck_assert_str_eq(group->environment.strings[0], "B=2");
    ck_assert_ptr_null(group->environment.strings[1]);
}

static char warnings[512];

static void note_warning(enum log_level level, struct log_fields fields, const char *message)
{
    if (level == LOG_LEVEL_WARNING)
        snprintf(warnings + strlen(warnings), sizeof(warnings) - strlen(warnings), "%s\n", message);
}

TEST(dropins_without_their_group_are_warned_of)
{
    write_group("a", "");
    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    ck_assert_int_eq(mkdir("b.group.d", 0755), 0);
    warnings[0] = '\0';
    log_set_sink(note_warning);
    load();
    log_set_sink(NULL);
    ck_assert_ptr_nonnull(strstr(warnings, "b.group.d is ignored: there is no b.group beside it"));
    ck_assert_ptr_null(strstr(warnings, "a.group"));
}

TEST(a_problem_in_a_dropin_names_the_dropin)
{
    write_group("a", "");
    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/a.conf", "\n[Pool]\nSize=0\n");
    ck_assert_int_eq(symlink("nowhere", "a.group.d/b.conf"), 0);
    ck_assert_str_eq(
        load_problems(),
        "a.group.d/a.conf:3: Size=0: out of range; allowed: a number from 1 to 4096, a share of "
        "the processors from 1% to 1000%, or a range such as 2..16, 0..8 or 2..auto (auto: the "
        "number of processors)\n"
        "a.group.d/b.conf:0: no such file\n");
}

TEST(dropins_without_their_group_do_not_matter)
{
    ck_assert_int_eq(mkdir("gone.group.d", 0755), 0);
    write_file("gone.group.d/a.conf", "nonsense");
    struct config *config = load();
    ck_assert_uint_eq(config->n_groups, 0);
}

TEST(exchanges_are_read_sorted_by_name)
{
    write_file("b-1.exchange", "[Exchange]\nType=pattern\nDescription=two\n");
    write_file("b.exchange", "[Exchange]\nType=single\n");
    struct config *config = load();
    struct config_exchange *first, *second;
    ck_assert_uint_eq(config->files[CONFIG_EXCHANGE].n, 2);
    first = config->files[CONFIG_EXCHANGE].all[0];
    second = config->files[CONFIG_EXCHANGE].all[1];
    ck_assert_str_eq(first->name, "b");
    ck_assert_int_eq(first->type, EXCHANGE_SINGLE);
    ck_assert_str_eq(second->name, "b-1");
    ck_assert_int_eq(second->type, EXCHANGE_PATTERN);
    ck_assert_str_eq(second->description, "two");
    ck_assert_ptr_eq(config_find_file(config, CONFIG_EXCHANGE, "b-1"), second);
    ck_assert_ptr_null(config_find_file(config, CONFIG_EXCHANGE, "c"));
}

const struct suite suite = {.setup = config_test_enter, .teardown = config_test_leave};
