/* SPDX-License-Identifier: MIT */
#include "../../supervisor/config.h"
#include "../../shared/cleanup.h"
#include "../../shared/log.h"
#include "../../supervisor/config-keys.h"
#include "../../supervisor/strv.h"
#include "../../supervisor/unitfile.h"
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM "ExecStart=/bin/true\n"

/* ---- a directory of configuration files ---- */

static char directory[] = "/tmp/troupe-config-XXXXXX";
static char source_directory[4096]; /* where the tests are run from: the top of the tree */

static void enter_directory(void)
{
    ck_assert_ptr_nonnull(getcwd(source_directory, sizeof(source_directory)));
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
}

static void leave_directory(void)
{
    char command[256];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* A group's file that starts /bin/true, with more behind. */
static void write_group(const char *name, const char *more)
{
    char path[128], text[4096];

    snprintf(path, sizeof(path), "%s.group", name);
    snprintf(text, sizeof(text), "[Group]\n" PROGRAM "%s", more);
    write_file(path, text);
}

/* "FILE:LINE: text", one per line; the directory of the test is left out. Static. */
static const char *describe(const struct config_problems *problems)
{
    static char text[16384];

    text[0] = '\0';
    for (size_t i = 0; i < problems->n_problems; i++) {
        const struct config_problem *problem = &problems->problems[i];
        const char *path = strncmp(problem->path, "./", 2) == 0 ? problem->path + 2 : problem->path;
        size_t used = strlen(text);

        snprintf(text + used, sizeof(text) - used, "%s:%u: %s\n", path, problem->line,
                 problem->text);
    }
    return text;
}

/* Loads what is right; to be freed. */
static struct config *load(void)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = NULL;
    int r = config_load(&config, ".", &problems);

    ck_assert_msg(r == 0, "%d: %s", r, describe(&problems));
    ck_assert_uint_eq(problems.n_problems, 0);
    return config;
}

/* Loads what is wrong; the problems. Static. */
static const char *load_problems(void)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = NULL;
    const char *text;

    ck_assert_int_eq(config_load(&config, ".", &problems), CONFIG_E_INVALID);
    ck_assert_ptr_null(config);
    text = describe(&problems);
    config_problems_deinit(&problems);
    ck_assert_ptr_null(problems.problems);
    return text;
}

/* Loads one group with this text behind ExecStart= in [Group]. */
static struct config_group *load_group(const char *more)
{
    struct config *config;
    struct config_group *group;

    write_group("a", more);
    config = load();
    ck_assert_uint_eq(config->n_groups, 1);
    group = config_take_group(config, 0);
    config_free(config);
    return group;
}

/* ---- defaults ---- */

START_TEST(an_empty_directory_is_a_configuration)
{
    struct config *config = load();

    ck_assert_uint_eq(config->n_groups, 0);
    ck_assert_ptr_null(config->daemon.admin_group);
    ck_assert_uint_eq(config->daemon.clients_max, 256);
    ck_assert_uint_eq(config->daemon.client_idle, USEC_INFINITY);
    ck_assert_uint_eq(config->daemon.deaths_max, 1000);
    ck_assert_uint_eq(config->daemon.timeout_stop, 30 * USEC_PER_SEC);
    ck_assert_int_eq(config->daemon.log_level, LOG_LEVEL_INFO);
    config_free(config);
}
END_TEST

START_TEST(a_missing_directory_is_an_error)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config = NULL;

    ck_assert_int_eq(config_load(&config, "missing", &problems), -ENOENT);
    ck_assert_uint_eq(problems.n_problems, 0);
    ck_assert_ptr_null(config);
}
END_TEST

static void assert_policy_defaults(const struct config_group *group)
{
    ck_assert_uint_eq(group->size, 1);
    ck_assert_uint_eq(group->max_jobs, 0);
    ck_assert_uint_eq(group->queue_max, 10000);
    ck_assert_uint_eq(group->queue_memory_max, UINT64_C(256) << 20);
    ck_assert_uint_eq(group->timeout, USEC_INFINITY);
    ck_assert_uint_eq(group->max_retries, 3);
    ck_assert_uint_eq(group->backoff_min, 100 * USEC_PER_MSEC);
    ck_assert_uint_eq(group->backoff_max, 30 * USEC_PER_SEC);
    ck_assert_double_eq_tol(group->backoff_random, 0.2, 1e-9);
    ck_assert_uint_eq(group->result_ttl, 3600 * USEC_PER_SEC);
    ck_assert_uint_eq(group->results_max, 10000);
    ck_assert_int_eq(group->restart, CONFIG_RESTART_ON_FAILURE);
    ck_assert_uint_eq(group->min, 100 * USEC_PER_MSEC);
    ck_assert_uint_eq(group->max, 30 * USEC_PER_SEC);
    ck_assert_double_eq_tol(group->random, 0.2, 1e-9);
    ck_assert_uint_eq(group->reset_after, 10 * USEC_PER_SEC);
    ck_assert_uint_eq(group->start_limit_burst, 5);
    ck_assert_uint_eq(group->start_limit_interval, 10 * USEC_PER_SEC);
}

static void assert_process_defaults(const struct config_group *group)
{
    ck_assert_int_eq(group->type, CONFIG_ACTOR);
    ck_assert_str_eq(group->description, "");
    ck_assert_ptr_null(group->user);
    ck_assert_ptr_null(group->group_name);
    ck_assert_ptr_null(group->working_directory);
    ck_assert_ptr_null(group->environment);
    ck_assert_ptr_null(group->after);
    ck_assert_uint_eq(group->timeout_start, 30 * USEC_PER_SEC);
    ck_assert_uint_eq(group->timeout_stop, 10 * USEC_PER_SEC);
    ck_assert_uint_eq(group->watchdog, USEC_INFINITY);
    ck_assert_int_eq(group->kill_signal, SIGTERM);
    ck_assert_uint_eq(group->mailbox_size, 256 << 10);
    ck_assert_uint_eq(group->inline_max, 32 << 10);
    ck_assert_uint_eq(group->memory_max, CONFIG_UNSET);
    ck_assert_uint_eq(group->memory_high, CONFIG_UNSET);
    ck_assert_uint_eq(group->cpu_weight, CONFIG_UNSET);
    ck_assert_uint_eq(group->cpu_quota_percent, CONFIG_UNSET);
    ck_assert_uint_eq(group->tasks_max, CONFIG_UNSET);
    ck_assert(!group->limit_nofile_set && !group->limit_core_set && !group->limit_as_set);
    ck_assert(!group->nice_set && !group->oom_score_adjust_set);
}

START_TEST(a_group_needs_only_a_program)
{
    struct config_group *group = load_group("");

    ck_assert_str_eq(group->name, "a");
    ck_assert_str_eq(group->path, "./a.group");
    ck_assert_str_eq(group->exec_start[0], "/bin/true");
    ck_assert_ptr_null(group->exec_start[1]);
    ck_assert_uint_eq(group->uid, geteuid());
    ck_assert_uint_eq(group->gid, getegid());
    assert_policy_defaults(group);
    assert_process_defaults(group);
    config_group_free(group);
}
END_TEST

START_TEST(defaults_are_had_without_a_file)
{
    struct config_group *group;

    ck_assert_int_eq(config_defaults(&group, "a"), 0);
    ck_assert_str_eq(group->name, "a");
    ck_assert_ptr_null(group->exec_start);
    assert_policy_defaults(group);
    assert_process_defaults(group);
    config_group_free(group);
    ck_assert_int_eq(config_defaults(&group, "-a"), -EINVAL);
}
END_TEST

/* ---- every key ---- */

START_TEST(every_key_of_the_pool_jobs_and_restarts_is_read)
{
    struct config_group *group = load_group(
        "[Pool]\nSize=4\nMaxJobs=100\n"
        "[Jobs]\nQueueMax=5\nQueueMemoryMax=1M\nTimeoutSec=1min 30s\nMaxRetries=7\n"
        "BackoffMinSec=1\nBackoffMaxSec=2\nBackoffRandom=50%\nResultTTLSec=0\nResultsMax=0\n"
        "[Restart]\nRestart=always\nMinSec=3\nMaxSec=4\nRandom=0\nResetAfterSec=infinity\n"
        "StartLimitBurst=0\nStartLimitIntervalSec=1h\n");

    ck_assert_uint_eq(group->size, 4);
    ck_assert_uint_eq(group->max_jobs, 100);
    ck_assert_uint_eq(group->queue_max, 5);
    ck_assert_uint_eq(group->queue_memory_max, 1 << 20);
    ck_assert_uint_eq(group->timeout, 90 * USEC_PER_SEC);
    ck_assert_uint_eq(group->max_retries, 7);
    ck_assert_uint_eq(group->backoff_min, USEC_PER_SEC);
    ck_assert_uint_eq(group->backoff_max, 2 * USEC_PER_SEC);
    ck_assert_double_eq_tol(group->backoff_random, 0.5, 1e-9);
    ck_assert_uint_eq(group->result_ttl, 0);
    ck_assert_uint_eq(group->results_max, 0);
    ck_assert_int_eq(group->restart, CONFIG_RESTART_ALWAYS);
    ck_assert_uint_eq(group->min, 3 * USEC_PER_SEC);
    ck_assert_uint_eq(group->max, 4 * USEC_PER_SEC);
    ck_assert_double_eq(group->random, 0);
    ck_assert_uint_eq(group->reset_after, USEC_INFINITY);
    ck_assert_uint_eq(group->start_limit_burst, 0);
    ck_assert_uint_eq(group->start_limit_interval, 3600 * USEC_PER_SEC);
    config_group_free(group);
}
END_TEST

START_TEST(every_key_of_workers_and_resources_is_read)
{
    struct config_group *group = load_group(
        "Type=service\nDescription=Digests of files\nWorkingDirectory=/tmp\n"
        "[Worker]\nTimeoutStartSec=1\nTimeoutStopSec=2\nWatchdogSec=3\nKillSignal=INT\n"
        "MailboxSize=1M\nInlineMax=4K\n"
        "[Resources]\nMemoryMax=64M\nMemoryHigh=32M\nCPUWeight=50\nCPUQuota=150%\nTasksMax=10\n"
        "LimitNOFILE=1024\nLimitCORE=0\nLimitAS=infinity\nNice=-5\nOOMScoreAdjust=-500\n");

    ck_assert_int_eq(group->type, CONFIG_SERVICE);
    ck_assert_str_eq(group->description, "Digests of files");
    ck_assert_str_eq(group->working_directory, "/tmp");
    ck_assert_uint_eq(group->timeout_start, USEC_PER_SEC);
    ck_assert_uint_eq(group->timeout_stop, 2 * USEC_PER_SEC);
    ck_assert_uint_eq(group->watchdog, 3 * USEC_PER_SEC);
    ck_assert_int_eq(group->kill_signal, SIGINT);
    ck_assert_uint_eq(group->mailbox_size, 1 << 20);
    ck_assert_uint_eq(group->inline_max, 4096);
    ck_assert_uint_eq(group->memory_max, 64 << 20);
    ck_assert_uint_eq(group->memory_high, 32 << 20);
    ck_assert_uint_eq(group->cpu_weight, 50);
    ck_assert_uint_eq(group->cpu_quota_percent, 150);
    ck_assert_uint_eq(group->tasks_max, 10);
    ck_assert(group->limit_nofile_set && group->limit_core_set && group->limit_as_set);
    ck_assert_uint_eq(group->limit_nofile, 1024);
    ck_assert_uint_eq(group->limit_core, 0);
    ck_assert_uint_eq(group->limit_as, RLIM_INFINITY);
    ck_assert(group->nice_set && group->oom_score_adjust_set);
    ck_assert_int_eq(group->nice, -5);
    ck_assert_int_eq(group->oom_score_adjust, -500);
    config_group_free(group);
}
END_TEST

START_TEST(every_key_of_the_daemon_is_read)
{
    const struct group *root = getgrgid(0);
    char text[256];
    struct config *config;

    ck_assert_ptr_nonnull(root);
    snprintf(text, sizeof(text),
             "[Supervisor]\nAdminGroup=%s\nClientsMax=7\nClientIdleSec=5min\nDeathsMax=8\n"
             "TimeoutStopSec=infinity\nLogLevel=debug\n",
             root->gr_name);
    write_file("troupe.conf", text);
    config = load();
    ck_assert_str_eq(config->daemon.admin_group, root->gr_name);
    ck_assert_uint_eq(config->daemon.admin_gid, 0);
    ck_assert_uint_eq(config->daemon.clients_max, 7);
    ck_assert_uint_eq(config->daemon.client_idle, 300 * USEC_PER_SEC);
    ck_assert_uint_eq(config->daemon.deaths_max, 8);
    ck_assert_uint_eq(config->daemon.timeout_stop, USEC_INFINITY);
    ck_assert_int_eq(config->daemon.log_level, LOG_LEVEL_DEBUG);
    config_free(config);
}
END_TEST

START_TEST(a_timeout_of_zero_is_none)
{
    struct config_group *group =
        load_group("[Jobs]\nTimeoutSec=0\n[Worker]\nWatchdogSec=0\nTimeoutStartSec=0\n");

    ck_assert_uint_eq(group->timeout, USEC_INFINITY);
    ck_assert_uint_eq(group->watchdog, USEC_INFINITY);
    ck_assert_uint_eq(group->timeout_start, USEC_INFINITY);
    config_group_free(group);
}
END_TEST

START_TEST(later_assignments_override_and_empty_ones_go_back_to_the_default)
{
    struct config_group *group = load_group("Description=x\nDescription=\n"
                                            "ExecStart=\nExecStart=/bin/false now\n"
                                            "[Pool]\nSize=4\nSize=5\n[Pool]\nMaxJobs=9\nMaxJobs=\n"
                                            "[Resources]\nNice=5\nNice=\nMemoryMax=1M\nMemoryMax=\n"
                                            "LimitCORE=0\nLimitCORE=\nCPUWeight=5\nCPUWeight=\n");

    ck_assert_str_eq(group->description, "");
    ck_assert_str_eq(group->exec_start[0], "/bin/false");
    ck_assert_str_eq(group->exec_start[1], "now");
    ck_assert_uint_eq(group->size, 5);
    ck_assert_uint_eq(group->max_jobs, 0);
    ck_assert(!group->nice_set);
    ck_assert(!group->limit_core_set);
    ck_assert_uint_eq(group->memory_max, CONFIG_UNSET);
    ck_assert_uint_eq(group->cpu_weight, CONFIG_UNSET);
    config_group_free(group);
}
END_TEST

START_TEST(groups_are_sorted_by_name)
{
    struct config *config;

    write_group("b", "");
    write_group("a-b", "");
    write_group("a", "");
    write_group("a.b", "");
    write_file(".hidden.group", "nonsense");
    write_file("README", "nonsense");
    config = load();
    ck_assert_uint_eq(config->n_groups, 4);
    ck_assert_str_eq(config->groups[0]->name, "a");
    ck_assert_str_eq(config->groups[1]->name, "a-b");
    ck_assert_str_eq(config->groups[2]->name, "a.b");
    ck_assert_str_eq(config->groups[3]->name, "b");
    config_free(config);
}
END_TEST

START_TEST(a_taken_group_is_no_longer_in_the_configuration)
{
    struct config *config;
    struct config_group *group;

    write_group("a", "");
    write_group("b", "");
    write_group("c", "");
    config = load();
    group = config_take_group(config, 1);
    ck_assert_str_eq(group->name, "b");
    ck_assert_uint_eq(config->n_groups, 2);
    ck_assert_str_eq(config->groups[1]->name, "c");
    config_free(config);
    ck_assert_str_eq(group->name, "b");
    config_group_free(group);
}
END_TEST

/* ---- drop-ins ---- */

START_TEST(dropins_override_in_the_order_of_their_names_and_lists_grow)
{
    struct config_group *group;

    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/20-b.conf", "[Pool]\nSize=3\n[Group]\nEnvironment=B=2 C=3\n");
    write_file("a.group.d/10-a.conf", "[Pool]\nSize=2\nMaxJobs=8\n[Group]\nEnvironment=A=9\n");
    write_file("a.group.d/30-c.txt", "nonsense");
    write_file("a.group.d/.hidden.conf", "nonsense");
    group = load_group("Environment=A=1\n[Pool]\nSize=1\n");
    ck_assert_uint_eq(group->size, 3);
    ck_assert_uint_eq(group->max_jobs, 8);
    ck_assert_uint_eq(strv_length((const char *const *)group->environment), 3);
    ck_assert_str_eq(group->environment[0], "A=9");
    ck_assert_str_eq(group->environment[1], "B=2");
    ck_assert_str_eq(group->environment[2], "C=3");
    config_group_free(group);
}
END_TEST

START_TEST(an_empty_assignment_in_a_dropin_empties_a_list)
{
    struct config_group *group;

    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/a.conf", "[Group]\nEnvironment=\nEnvironment=B=2\n");
    group = load_group("Environment=A=1\n");
    ck_assert_str_eq(group->environment[0], "B=2");
    ck_assert_ptr_null(group->environment[1]);
    config_group_free(group);
}
END_TEST

START_TEST(a_problem_in_a_dropin_names_the_dropin)
{
    write_group("a", "");
    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/a.conf", "\n[Pool]\nSize=0\n");
    ck_assert_int_eq(symlink("nowhere", "a.group.d/b.conf"), 0);
    ck_assert_str_eq(load_problems(),
                     "a.group.d/a.conf:3: Size=0: out of range; allowed: a number from 1 to 4096\n"
                     "a.group.d/b.conf:0: no such file\n");
}
END_TEST

START_TEST(dropins_without_their_group_do_not_matter)
{
    struct config *config;

    ck_assert_int_eq(mkdir("gone.group.d", 0755), 0);
    write_file("gone.group.d/a.conf", "nonsense");
    config = load();
    ck_assert_uint_eq(config->n_groups, 0);
    config_free(config);
}
END_TEST

/* ---- environment ---- */

START_TEST(files_override_the_environment_in_their_order)
{
    struct config_group *group;
    char more[512];

    write_file("one", "A=one\nB=one\n");
    write_file("two", "# comment\nB=\"two words\"\n");
    snprintf(more, sizeof(more),
             "EnvironmentFile=%s/one\nEnvironmentFile=-%s/missing\nEnvironmentFile=%s/two\n"
             "Environment=A=0 \"C=x y\" D=\n",
             directory, directory, directory);
    group = load_group(more);
    ck_assert_uint_eq(strv_length((const char *const *)group->environment), 4);
    ck_assert_str_eq(group->environment[0], "A=one");
    ck_assert_str_eq(group->environment[1], "C=x y");
    ck_assert_str_eq(group->environment[2], "D=");
    ck_assert_str_eq(group->environment[3], "B=two words");
    ck_assert_uint_eq(strv_length((const char *const *)group->environment_files), 3);
    config_group_free(group);
}
END_TEST

START_TEST(problems_of_environment_files_are_found)
{
    char more[512], expected[1024];

    write_file("one", "A=1\nnonsense\n");
    snprintf(more, sizeof(more), "EnvironmentFile=%s/one\nEnvironmentFile=%s/missing\n", directory,
             directory);
    write_group("a", more);
    snprintf(expected, sizeof(expected),
             "%s/one:2: not KEY=VALUE with a KEY of letters, digits and _\n"
             "a.group:4: EnvironmentFile=%s/missing: No such file or directory; allowed: a "
             "readable file, or - in front if it may be missing\n",
             directory, directory);
    ck_assert_str_eq(load_problems(), expected);
}
END_TEST

/* ---- what is wrong ---- */

START_TEST(unknown_words_are_problems_with_the_nearest_one)
{
    write_group("a", "Descriptoin=x\nSize=2\n[Pol]\nSize=0\n[Pool]\nSise=1\nBanana=2\n"
                     "[Fruit]\nx=y\n[jobs]\n");
    ck_assert_str_eq(
        load_problems(),
        "a.group:3: unknown key 'Descriptoin' in [Group]; did you mean 'Description'?\n"
        "a.group:4: unknown key 'Size' in [Group]; it belongs in [Pool]\n"
        "a.group:5: unknown section [Pol]; did you mean [Pool]?\n"
        "a.group:8: unknown key 'Sise' in [Pool]; did you mean 'Size'?\n"
        "a.group:9: unknown key 'Banana' in [Pool]; allowed: Size, MaxJobs\n"
        "a.group:10: unknown section [Fruit]; allowed: [Group], [Pool], [Jobs], [Restart], "
        "[Worker], [Resources]\n"
        "a.group:12: unknown section [jobs]; did you mean [Jobs]?\n");
}
END_TEST

START_TEST(all_problems_of_all_files_come_in_one_run)
{
    write_file("troupe.conf", "[Supervisor]\nClientsMax=0\nLogLevel=loud\n[Group]\n");
    write_group("b", "[Pool]\nSize=4097\n");
    write_file("a.group", "[Group]\nType=actr\nnonsense\n");
    write_file("-.group", PROGRAM);
    ck_assert_str_eq(
        load_problems(),
        "troupe.conf:2: ClientsMax=0: out of range; allowed: a number from 1 to 65536\n"
        "troupe.conf:3: LogLevel=loud: unknown; allowed: error, warning, notice, info, debug\n"
        "troupe.conf:4: unknown section [Group]; allowed: [Supervisor]\n"
        "-.group:0: not a possible name of a group; allowed: up to 64 characters of A-Z a-z 0-9 "
        "_ . @ -, the first one a letter or a digit\n"
        "a.group:0: ExecStart= is missing in [Group]: which program to run\n"
        "a.group:2: Type=actr: unknown; allowed: actor, service\n"
        "a.group:3: neither [Section], Key=value, nor a comment (# or ;)\n"
        "b.group:4: Size=4097: out of range; allowed: a number from 1 to 4096\n");
}
END_TEST

START_TEST(values_that_are_none_are_problems_of_one_key)
{
    static const struct {
        const char *section, *assignment, *reason;
    } cases[] = {
        {"Pool", "Size=x", "not such a value"},
        {"Pool", "Size=infinity", "out of range"},
        {"Jobs", "QueueMax=0", "out of range"},
        {"Jobs", "QueueMemoryMax=infinity", "out of range"},
        {"Jobs", "MaxRetries=1000001", "out of range"},
        {"Jobs", "TimeoutSec=soon", "not such a value"},
        {"Jobs", "BackoffMaxSec=infinity", "out of range"},
        {"Jobs", "BackoffRandom=1.1", "out of range"},
        {"Restart", "Restart=on-abort", "unknown"},
        {"Worker", "KillSignal=SIGNONE", "not such a value"},
        {"Worker", "KillSignal=99", "out of range"},
        {"Worker", "MailboxSize=8K", "out of range"},
        {"Worker", "MailboxSize=2G", "out of range"},
        {"Resources", "MemoryMax=0", "out of range"},
        {"Resources", "CPUWeight=10001", "out of range"},
        {"Resources", "CPUQuota=50", "not such a value"},
        {"Resources", "LimitNOFILE=1024:4096", "not such a value"},
        {"Resources", "Nice=20", "out of range"},
        {"Resources", "OOMScoreAdjust=-1001", "out of range"},
        {"Group", "WorkingDirectory=tmp", "not an absolute path"},
        {"Group", "Environment=1A=2", "not the name of a variable"},
        {"Group", "Environment=A=1 B", "'=' is missing (quote a value that has spaces)"},
        {"Group", "Environment='A=1", "a quote is not closed"},
        {"Group", "EnvironmentFile=-file", "not an absolute path"},
        {"Group", "After=-x", "not the name of a group"},
    };

    for (size_t i = 0; i < ELEMENTS(cases); i++) {
        char more[256], expected[512];
        const char *problems;

        snprintf(more, sizeof(more), "[%s]\n%s\n", cases[i].section, cases[i].assignment);
        write_group("a", more);
        snprintf(expected, sizeof(expected), "a.group:4: %s: %s; allowed: ", cases[i].assignment,
                 cases[i].reason);
        problems = load_problems();
        ck_assert_msg(strncmp(problems, expected, strlen(expected)) == 0, "%s", problems);
        ck_assert_ptr_eq(strchr(problems, '\n'), problems + strlen(problems) - 1);
    }
}
END_TEST

START_TEST(quoted_values_can_neither_flood_nor_steer_the_terminal)
{
    char text[4096], *at = text;
    const char *problems;

    at += sprintf(at, "[Group]\nType=\x1b[31m");
    memset(at, 'x', 2000);
    strcpy(at + 2000, "\n" PROGRAM);
    write_file("a.group", text);
    problems = load_problems();
    ck_assert_uint_lt(strlen(problems), 200);
    ck_assert_ptr_nonnull(strstr(problems, "Type=?[31mxxx"));
    ck_assert_ptr_null(strchr(problems, '\x1b'));
}
END_TEST

START_TEST(a_text_that_is_cut_stays_valid)
{
    char text[4096] = "[Group]\n" PROGRAM "Type=x";
    const char *problems;

    for (size_t i = 0; i < 100; i++)
        strcat(text, "\xc3\xa4");
    write_file("a.group", text);
    problems = load_problems();
    ck_assert_ptr_nonnull(strstr(problems, "\xc3\xa4?: unknown"));
}
END_TEST

START_TEST(files_that_cannot_be_read_are_problems)
{
    ck_assert_int_eq(mkdir("a.group", 0755), 0);
    ck_assert_int_eq(symlink("nowhere", "b.group"), 0);
    write_group("c", "After=a\n");
    ck_assert_str_eq(load_problems(), "a.group:0: not a regular file\n"
                                      "b.group:0: no such file\n");
}
END_TEST

/* ---- programs ---- */

START_TEST(the_program_must_exist_and_be_executable)
{
    write_file("plain", "");
    write_file("a.group", "[Group]\nExecStart=/nonexistent/program\n");
    ck_assert_str_eq(load_problems(), "a.group:2: ExecStart=: program '/nonexistent/program': no "
                                      "such file; allowed: an executable file\n");
    write_file("a.group", "[Group]\nExecStart=/etc/passwd\n");
    ck_assert_str_eq(load_problems(), "a.group:2: ExecStart=: program '/etc/passwd': not "
                                      "executable; allowed: an executable file\n");
    write_file("a.group", "[Group]\nExecStart=/tmp\n");
    ck_assert_str_eq(load_problems(), "a.group:2: ExecStart=: program '/tmp': not a regular file; "
                                      "allowed: an executable file\n");
}
END_TEST

START_TEST(a_program_by_name_is_looked_for_on_the_path)
{
    struct config_group *group = load_group("ExecStart=true --flag\n");

    ck_assert(strcmp(group->exec_start[0], "/usr/bin/true") == 0 ||
              strcmp(group->exec_start[0], "/bin/true") == 0);
    ck_assert_str_eq(group->exec_start[1], "--flag");
    config_group_free(group);
    write_file("a.group", "[Group]\nExecStart=no-such-program-here x\n");
    ck_assert_str_eq(load_problems(),
                     "a.group:2: ExecStart=: program 'no-such-program-here' is not on the path "
                     "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
}
END_TEST

START_TEST(command_lines_that_cannot_be_run_are_problems)
{
    static const char *const cases[][2] = {
        {"bin/true", "the path of the program is not absolute"},
        {"-/bin/true", "the prefixes - @ + ! : | of systemd are not supported"},
        {"/bin/%n", "the program itself cannot have specifiers"},
        {"/bin/true %H", "an unknown specifier (a per cent sign itself is written %%)"},
        {"/bin/true 'x", "a quote is not closed"},
        {"\"\"", "the program is missing"},
        {"/bin/true ; /bin/false", "';' would begin a second command, but there is only one (as an "
                                   "argument it is written '\\;')"},
    };

    for (size_t i = 0; i < ELEMENTS(cases); i++) {
        char text[256], expected[512];
        const char *problems;

        snprintf(text, sizeof(text), "[Group]\nExecStart=%s\n", cases[i][0]);
        write_file("a.group", text);
        snprintf(expected, sizeof(expected), "a.group:2: ExecStart=%s: %s; allowed: ", cases[i][0],
                 cases[i][1]);
        problems = load_problems();
        ck_assert_msg(strncmp(problems, expected, strlen(expected)) == 0, "%s", problems);
        ck_assert_ptr_eq(strchr(problems, '\n'), problems + strlen(problems) - 1);
    }
}
END_TEST

START_TEST(each_slot_has_its_own_command_line)
{
    struct config_group *group =
        load_group("ExecStart=/bin/echo %n-%i '100%%' \"a b\" \\\n  --last\n");
    char **argv;

    ck_assert_int_eq(config_expand_argv(group, 12, &argv), 0);
    ck_assert_str_eq(argv[0], "/bin/echo");
    ck_assert_str_eq(argv[1], "a-12");
    ck_assert_str_eq(argv[2], "100%");
    ck_assert_str_eq(argv[3], "a b");
    ck_assert_str_eq(argv[4], "--last");
    ck_assert_ptr_null(argv[5]);
    ck_assert_ptr_null(config_argv_free(argv));
    ck_assert_ptr_null(config_argv_free(NULL));
    config_group_free(group);
}
END_TEST

/* ---- users ---- */

START_TEST(users_and_groups_are_resolved_by_name_and_by_number)
{
    const struct passwd *user = getpwnam("nobody");
    struct config_group *group;
    char more[128];
    uid_t uid;
    gid_t gid;

    ck_assert_ptr_nonnull(user);
    uid = user->pw_uid;
    gid = user->pw_gid;
    group = load_group("User=nobody\n");
    ck_assert_uint_eq(group->uid, uid);
    ck_assert_uint_eq(group->gid, gid);
    config_group_free(group);
    snprintf(more, sizeof(more), "User=%u\nGroup=0\n", uid);
    group = load_group(more);
    ck_assert_str_eq(group->user, "nobody");
    ck_assert_uint_eq(group->uid, uid);
    ck_assert_uint_eq(group->gid, 0);
    ck_assert_str_eq(group->group_name, getgrgid(0)->gr_name);
    config_group_free(group);
    group = load_group("Group=0\n");
    ck_assert_uint_eq(group->uid, geteuid());
    ck_assert_uint_eq(group->gid, 0);
    config_group_free(group);
}
END_TEST

START_TEST(unknown_users_and_groups_are_problems)
{
    write_file("troupe.conf", "[Supervisor]\nAdminGroup=no-such-group\n");
    write_group("a", "User=no-such-user\nGroup=4294967295\n");
    ck_assert_str_eq(load_problems(),
                     "troupe.conf:2: AdminGroup=no-such-group: unknown group; allowed: the name or "
                     "number of an existing group\n"
                     "a.group:3: User=no-such-user: unknown user; allowed: the name or number of "
                     "an existing user\n"
                     "a.group:4: Group=4294967295: unknown group; allowed: the name or number of "
                     "an existing group\n");
}
END_TEST

START_TEST(another_user_need_not_be_the_one_who_may_execute)
{
    struct config_group *group;
    char text[512];

    write_file("program", "");
    ck_assert_int_eq(chmod("program", 0010), 0);
    snprintf(text, sizeof(text), "ExecStart=%s/program\nUser=nobody\n", directory);
    group = load_group(text);
    config_group_free(group);
    ck_assert_int_eq(chmod("program", 0600), 0);
    ck_assert_ptr_nonnull(strstr(load_problems(), "not executable"));
}
END_TEST

START_TEST(the_working_directory_must_be_one)
{
    write_group("a", "WorkingDirectory=/nonexistent\n");
    write_group("b", "WorkingDirectory=/etc/passwd\n");
    ck_assert_str_eq(load_problems(),
                     "a.group:3: WorkingDirectory=/nonexistent: No such file or directory; "
                     "allowed: an existing directory\n"
                     "b.group:3: WorkingDirectory=/etc/passwd: not a directory; allowed: an "
                     "existing directory\n");
}
END_TEST

/* ---- what must fit together ---- */

START_TEST(the_mailbox_is_rounded_up_and_bounds_what_is_inline)
{
    struct config_group *group = load_group("[Worker]\nMailboxSize=100K\nInlineMax=32K\n");

    ck_assert_uint_eq(group->mailbox_size, 128 << 10);
    ck_assert_uint_eq(group->inline_max, 32 << 10);
    config_group_free(group);
    group = load_group("[Worker]\nMailboxSize=16K\n");
    ck_assert_uint_eq(group->mailbox_size, 16 << 10);
    ck_assert_uint_eq(group->inline_max, 4 << 10);
    config_group_free(group);
    write_group("a", "[Worker]\nInlineMax=4097\nMailboxSize=16K\n");
    ck_assert_str_eq(load_problems(), "a.group:4: InlineMax= (4097) is above a quarter of "
                                      "MailboxSize= (16384); allowed: up to 4096\n");
}
END_TEST

START_TEST(a_minimum_above_its_maximum_is_a_problem)
{
    write_group("a", "[Jobs]\nBackoffMinSec=1min\n[Restart]\nMinSec=5\nMaxSec=4\n");
    ck_assert_str_eq(load_problems(),
                     "a.group:4: BackoffMinSec= (60000 ms) is above BackoffMaxSec= (30000 ms); "
                     "allowed: up to BackoffMaxSec=\n"
                     "a.group:7: MinSec= (5000 ms) is above MaxSec= (4000 ms); allowed: up to "
                     "MaxSec=\n");
}
END_TEST

START_TEST(groups_start_after_groups_that_exist)
{
    struct config *config;

    write_group("a", "After=b c\nAfter=b\n");
    write_group("b", "After=c\n");
    write_group("c", "");
    config = load();
    ck_assert_uint_eq(strv_length((const char *const *)config->groups[0]->after), 2);
    ck_assert_str_eq(config->groups[0]->after[0], "b");
    ck_assert_str_eq(config->groups[0]->after[1], "c");
    config_free(config);
    write_group("a", "After=bb other\n");
    ck_assert_str_eq(load_problems(),
                     "a.group:3: After=bb: unknown group; did you mean 'b'?\n"
                     "a.group:3: After=other: unknown group; allowed: names of NAME.group files\n");
}
END_TEST

START_TEST(groups_that_wait_for_each_other_are_a_problem)
{
    write_group("a", "After=b\n");
    write_group("b", "After=c d\n");
    write_group("c", "After=b\n");
    write_group("d", "After=d\n");
    ck_assert_str_eq(load_problems(),
                     "b.group:3: After= makes groups wait for each other: b -> c -> b\n"
                     "d.group:3: After= makes groups wait for each other: d -> d\n");
}
END_TEST

START_TEST(a_long_circle_is_told_in_short)
{
    const char *problems;

    for (unsigned i = 0; i < 100; i++) {
        char name[64], more[64];

        snprintf(name, sizeof(name), "a-group-with-a-long-name-%02u", i);
        snprintf(more, sizeof(more), "After=a-group-with-a-long-name-%02u\n", (i + 1) % 100);
        write_group(name, more);
    }
    problems = load_problems();
    ck_assert_ptr_nonnull(strstr(problems, "... -> a-group-with-a-long-name-00\n"));
    ck_assert_uint_lt(strlen(problems), 512);
}
END_TEST

/* ---- comparing ---- */

START_TEST(policies_change_without_another_process)
{
    struct config_group *a = load_group("");
    struct config_group *b = load_group("Description=x\nAfter=\n[Pool]\nSize=9\nMaxJobs=1\n"
                                        "[Jobs]\nQueueMax=1\nTimeoutSec=1\n[Restart]\nMaxSec=1\n"
                                        "[Worker]\nTimeoutStopSec=1\nKillSignal=INT\n");

    ck_assert(config_group_equal(a, a));
    ck_assert(!config_group_equal(a, b));
    ck_assert(config_group_same_process(a, b));
    config_group_free(a);
    config_group_free(b);
}
END_TEST

START_TEST(what_a_process_is_started_with_makes_another_process)
{
    static const char *const changes[] = {
        "ExecStart=/bin/true x\n",
        "Type=service\n",
        "User=nobody\n",
        "Group=nogroup\n",
        "WorkingDirectory=/tmp\n",
        "Environment=A=1\n",
        "[Worker]\nWatchdogSec=1\n",
        "[Worker]\nMailboxSize=1M\n",
        "[Worker]\nInlineMax=1K\n",
        "[Resources]\nMemoryMax=1G\n",
        "[Resources]\nNice=0\n",
        "[Resources]\nLimitCORE=0\n",
    };
    struct config_group *a = load_group("");

    for (size_t i = 0; i < ELEMENTS(changes); i++) {
        struct config_group *b = load_group(changes[i]);

        ck_assert_msg(!config_group_same_process(a, b), "%s", changes[i]);
        ck_assert_msg(!config_group_equal(a, b), "%s", changes[i]);
        ck_assert(config_group_same_process(b, b));
        config_group_free(b);
    }
    config_group_free(a);
}
END_TEST

/* ---- single files ---- */

static const char *verify(const char *path, int expected)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    const char *text;

    ck_assert_int_eq(config_verify_file(path, &problems), expected);
    text = describe(&problems);
    config_problems_deinit(&problems);
    return text;
}

START_TEST(single_files_are_verified_by_their_kind)
{
    write_group("a", "After=b\n[Pool]\nSize=0\n");
    write_file("troupe.conf", "[Supervisor]\nDeathsMax=x\n");
    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/x.conf", "[Pool]\nMaxJobs=x\n");
    write_file("notes.txt", "");
    ck_assert_str_eq(verify("a.group", CONFIG_E_INVALID),
                     "a.group:3: After=b: unknown group; allowed: names of NAME.group files\n"
                     "a.group:5: Size=0: out of range; allowed: a number from 1 to 4096\n"
                     "a.group.d/x.conf:2: MaxJobs=x: not such a value; allowed: a number from 0 "
                     "(never) to 1000000000\n");
    ck_assert_ptr_nonnull(strstr(verify("troupe.conf", CONFIG_E_INVALID), "troupe.conf:2: Deaths"));
    ck_assert_ptr_nonnull(strstr(verify("./a.group.d/x.conf", CONFIG_E_INVALID), "x.conf:2: MaxJ"));
    ck_assert_ptr_nonnull(strstr(verify("notes.txt", CONFIG_E_INVALID), "troupe.conf, NAME.group"));
    ck_assert_ptr_nonnull(strstr(verify(".", CONFIG_E_INVALID), "troupe.conf:2: Deaths"));
    ck_assert_str_eq(verify("missing.group", -ENOENT), "");
}
END_TEST

START_TEST(good_single_files_have_no_problems)
{
    write_group("b", "After=a\n");
    write_group("a", "");
    write_file("troupe.conf", "[Supervisor]\n");
    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/x.conf", "[Pool]\nMaxJobs=1\n");
    verify("b.group", 0);
    verify("troupe.conf", 0);
    verify("a.group.d/x.conf", 0);
    verify(".", 0);
    write_group("a", "After=a\n");
    ck_assert_str_eq(verify("a.group", CONFIG_E_INVALID),
                     "a.group:3: After= makes the group wait for itself: a\n");
}
END_TEST

/* ---- the table, the examples and the manuals ---- */

START_TEST(fields_have_the_size_of_their_type)
{
    const struct config_schema *schemas[] = {&CONFIG_GROUP_SCHEMA, &CONFIG_DAEMON_SCHEMA};

    for (size_t i = 0; i < ELEMENTS(schemas); i++)
        for (size_t j = 0; j < schemas[i]->n_keys; j++) {
            const struct config_key *key = &schemas[i]->keys[j];

            ck_assert_msg(key->size == key->type->size, "%s", key->name);
            ck_assert_msg(key->allowed, "%s", key->name);
        }
}
END_TEST

static char *read_source(const char *name, size_t *ret_size)
{
    char path[8192], *text;
    int r;

    snprintf(path, sizeof(path), "%s/%s", source_directory, name);
    r = unitfile_read(path, &text, ret_size);
    ck_assert_msg(r == 0, "%s: %d (tests are run from the top of the tree)", path, r);
    text = realloc(text, *ret_size + 1);
    ck_assert_ptr_nonnull(text);
    text[*ret_size] = '\0';
    return text;
}

/* "#Key=default" (or "#Key=" where nothing is the default) stands in the section. */
static void assert_in_example(const char *example, const struct config_key *key)
{
    char section[64], line[128];
    const char *begin, *end, *found;

    snprintf(section, sizeof(section), "\n[%s]\n", key->section);
    begin = strstr(example, section);
    ck_assert_msg(begin, "[%s]", key->section);
    end = strstr(begin + 1, "\n[");
    snprintf(line, sizeof(line), "\n#%s=%s\n", key->name, key->fallback ? key->fallback : "");
    found = strstr(begin, line);
    ck_assert_msg(found && (!end || found < end), "[%s]%s", key->section, line);
}

START_TEST(the_examples_show_every_key_with_its_default)
{
    size_t size;
    char *text = read_source("units/example.group.example", &size);

    for (size_t i = 0; i < CONFIG_GROUP_SCHEMA.n_keys; i++)
        if (strcmp(CONFIG_GROUP_SCHEMA.keys[i].name, "ExecStart") != 0)
            assert_in_example(text, &CONFIG_GROUP_SCHEMA.keys[i]);
    free(text);
    text = read_source("units/troupe.conf.example", &size);
    for (size_t i = 0; i < CONFIG_DAEMON_SCHEMA.n_keys; i++)
        assert_in_example(text, &CONFIG_DAEMON_SCHEMA.keys[i]);
    free(text);
}
END_TEST

/* The examples with every "#Key=" taken at its word. */
static void uncomment(char *text)
{
    char *to = text;
    bool line_begins = true;

    for (char *at = text; *at; at++) {
        if (line_begins && *at == '#' && at[1] >= 'A' && at[1] <= 'Z' && strchr(at, '=') &&
            strcspn(at, " =\n") == strcspn(at, "="))
            at++;
        line_begins = *at == '\n';
        *to++ = *at;
    }
    *to = '\0';
}

START_TEST(the_uncommented_examples_are_valid_and_change_nothing)
{
    size_t size;
    char *text = read_source("units/example.group.example", &size);
    struct config *config;
    struct config_group *defaults;

    uncomment(text);
    write_file("example.group", text);
    free(text);
    text = read_source("units/troupe.conf.example", &size);
    uncomment(text);
    write_file("troupe.conf", text);
    free(text);
    config = load();
    ck_assert_int_eq(config_defaults(&defaults, "example"), 0);
    ck_assert_int_eq(strv_append(&defaults->exec_start, config->groups[0]->exec_start[0]), 0);
    for (char **word = config->groups[0]->exec_start + 1; *word; word++)
        ck_assert_int_eq(strv_append(&defaults->exec_start, *word), 0);
    ck_assert(config_group_equal(config->groups[0], defaults));
    config_group_free(defaults);
    config_free(config);
}
END_TEST

static void assert_in_manual(const char *manual, const struct config_schema *schema)
{
    size_t size;
    char *text = read_source(manual, &size);

    for (size_t i = 0; i < schema->n_keys; i++) {
        char item[128];

        snprintf(item, sizeof(item), "\n.It Ic %s Ns = Ns ", schema->keys[i].name);
        ck_assert_msg(strstr(text, item), "%s lacks%s", manual, item);
    }
    free(text);
}

START_TEST(the_manuals_tell_of_every_key)
{
    assert_in_manual("supervisor/troupe.group.5", &CONFIG_GROUP_SCHEMA);
    assert_in_manual("supervisor/troupe.conf.5", &CONFIG_DAEMON_SCHEMA);
}
END_TEST

static void add_tests_of_reading(TCase *tcase)
{
    tcase_add_test(tcase, an_empty_directory_is_a_configuration);
    tcase_add_test(tcase, a_missing_directory_is_an_error);
    tcase_add_test(tcase, a_group_needs_only_a_program);
    tcase_add_test(tcase, defaults_are_had_without_a_file);
    tcase_add_test(tcase, every_key_of_the_pool_jobs_and_restarts_is_read);
    tcase_add_test(tcase, every_key_of_workers_and_resources_is_read);
    tcase_add_test(tcase, every_key_of_the_daemon_is_read);
    tcase_add_test(tcase, a_timeout_of_zero_is_none);
    tcase_add_test(tcase, later_assignments_override_and_empty_ones_go_back_to_the_default);
    tcase_add_test(tcase, groups_are_sorted_by_name);
    tcase_add_test(tcase, a_taken_group_is_no_longer_in_the_configuration);
    tcase_add_test(tcase, dropins_override_in_the_order_of_their_names_and_lists_grow);
    tcase_add_test(tcase, an_empty_assignment_in_a_dropin_empties_a_list);
    tcase_add_test(tcase, a_problem_in_a_dropin_names_the_dropin);
    tcase_add_test(tcase, dropins_without_their_group_do_not_matter);
    tcase_add_test(tcase, files_override_the_environment_in_their_order);
    tcase_add_test(tcase, problems_of_environment_files_are_found);
}

static void add_tests_of_problems(TCase *tcase)
{
    tcase_add_test(tcase, unknown_words_are_problems_with_the_nearest_one);
    tcase_add_test(tcase, all_problems_of_all_files_come_in_one_run);
    tcase_add_test(tcase, values_that_are_none_are_problems_of_one_key);
    tcase_add_test(tcase, quoted_values_can_neither_flood_nor_steer_the_terminal);
    tcase_add_test(tcase, a_text_that_is_cut_stays_valid);
    tcase_add_test(tcase, files_that_cannot_be_read_are_problems);
    tcase_add_test(tcase, the_program_must_exist_and_be_executable);
    tcase_add_test(tcase, a_program_by_name_is_looked_for_on_the_path);
    tcase_add_test(tcase, command_lines_that_cannot_be_run_are_problems);
    tcase_add_test(tcase, each_slot_has_its_own_command_line);
    tcase_add_test(tcase, users_and_groups_are_resolved_by_name_and_by_number);
    tcase_add_test(tcase, unknown_users_and_groups_are_problems);
    tcase_add_test(tcase, another_user_need_not_be_the_one_who_may_execute);
    tcase_add_test(tcase, the_working_directory_must_be_one);
    tcase_add_test(tcase, the_mailbox_is_rounded_up_and_bounds_what_is_inline);
    tcase_add_test(tcase, a_minimum_above_its_maximum_is_a_problem);
    tcase_add_test(tcase, groups_start_after_groups_that_exist);
    tcase_add_test(tcase, groups_that_wait_for_each_other_are_a_problem);
    tcase_add_test(tcase, a_long_circle_is_told_in_short);
}

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *reading = tcase_create("reading"), *problems = tcase_create("problems");
    TCase *whole = tcase_create("whole");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(reading, enter_directory, leave_directory);
    tcase_add_checked_fixture(problems, enter_directory, leave_directory);
    tcase_add_checked_fixture(whole, enter_directory, leave_directory);
    add_tests_of_reading(reading);
    add_tests_of_problems(problems);
    tcase_add_test(whole, policies_change_without_another_process);
    tcase_add_test(whole, what_a_process_is_started_with_makes_another_process);
    tcase_add_test(whole, single_files_are_verified_by_their_kind);
    tcase_add_test(whole, good_single_files_have_no_problems);
    tcase_add_test(whole, fields_have_the_size_of_their_type);
    tcase_add_test(whole, the_examples_show_every_key_with_its_default);
    tcase_add_test(whole, the_uncommented_examples_are_valid_and_change_nothing);
    tcase_add_test(whole, the_manuals_tell_of_every_key);
    suite_add_tcase(suite, reading);
    suite_add_tcase(suite, problems);
    suite_add_tcase(suite, whole);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
