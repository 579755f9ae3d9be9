/* SPDX-License-Identifier: MIT */

/* Defaults, values and comparison of every key. */

#include "shared/base/log.h"
#include "supervisor/config/keys/keys.h"
#include "tests/unit/config-directory.h"
#include "tests/unit/suite.h"
#include <grp.h>

static void assert_policy_defaults(const struct config_group *group)
{
    ck_assert_uint_eq(group->size.low, 1);
    ck_assert_uint_eq(group->spare, 0);
    ck_assert_uint_eq(group->prefetch, 1);
    ck_assert_uint_eq(group->max_jobs, 0);
    ck_assert_uint_eq(group->max_memory, CONFIG_UNSET);
    ck_assert_uint_eq(group->max_age, USEC_INFINITY);
    ck_assert_uint_eq(group->no_progress, USEC_INFINITY);
    ck_assert_uint_eq(group->batch_max, 10);
    ck_assert(!group->durable);
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
    ck_assert_uint_eq(group->start_limit_burst, 0);
    ck_assert_uint_eq(group->start_limit_interval, 10 * USEC_PER_SEC);
}

static void assert_process_defaults(const struct config_group *group)
{
    ck_assert_int_eq(group->type, CONFIG_ACTOR);
    ck_assert_str_eq(group->description, "");
    ck_assert_ptr_null(group->user);
    ck_assert_ptr_null(group->group_name);
    ck_assert_ptr_null(group->working_directory);
    ck_assert_ptr_null(group->environment.strings);
    ck_assert_ptr_null(group->after.strings);
    ck_assert_uint_eq(group->timeout_start, 30 * USEC_PER_SEC);
    ck_assert_uint_eq(group->timeout_stop, 10 * USEC_PER_SEC);
    ck_assert_uint_eq(group->watchdog, USEC_INFINITY);
    ck_assert_int_eq(group->kill_signal, SIGTERM);
    ck_assert_int_eq(group->kill_mode, CONFIG_KILL_CONTROL_GROUP);
    ck_assert_uint_eq(group->mailbox_size, 256 << 10);
    ck_assert_uint_eq(group->inline_max, 32 << 10);
    ck_assert_uint_eq(group->spin, 50);
    ck_assert_uint_eq(group->mailbox_max, 10000);
    ck_assert_uint_eq(group->mailbox_memory_max, UINT64_C(64) << 20);
    ck_assert_int_eq(group->overflow, CONFIG_OVERFLOW_REJECT);
    ck_assert_int_eq(group->on_crash, CONFIG_ON_CRASH_RETRY);
    ck_assert_uint_eq(group->message_retries, 3);
    ck_assert_uint_eq(group->memory_max, CONFIG_UNSET);
    ck_assert_uint_eq(group->memory_high, CONFIG_UNSET);
    ck_assert_uint_eq(group->cpu_weight, CONFIG_UNSET);
    ck_assert_uint_eq(group->cpu_quota_percent, CONFIG_UNSET);
    ck_assert_uint_eq(group->tasks_max, CONFIG_UNSET);
    ck_assert(!group->limit_nofile_set && !group->limit_core_set && !group->limit_as_set);
    ck_assert(!group->nice_set && !group->oom_score_adjust_set);
}

TEST(E1_a_size_may_be_a_range)
{
    static const struct {
        const char *text;
        unsigned low, high;
    } sizes[] = {
        {"4", 4, 4}, {"2..16", 2, 16}, {"0..8", 0, 8}, {"3..3", 3, 3}, {"4096..auto", 4096, 4096}};
    const struct config_key *key = config_schema_find(&CONFIG_GROUP_SCHEMA, "Size");
    struct config_group group = {0};
    const char *reason;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        ck_assert_int_eq(config_key_assign(key, &group, sizes[i].text, &reason), 0);
        ck_assert_uint_eq(group.size.low, sizes[i].low);
        ck_assert_uint_eq(group.size.high, sizes[i].high);
    }
    ck_assert_int_eq(config_key_assign(key, &group, "0..auto", &reason), 0);
    ck_assert_uint_ge(group.size.high, 1);
}

TEST(a_group_needs_only_a_program)
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
}

TEST(defaults_are_had_without_a_file)
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

/* ---- every key ---- */

TEST(spares_are_for_actors)
{
    struct config_group *group = load_group("[Pool]\nSpare=2\n");

    ck_assert_uint_eq(group->spare, 2);
    write_group("a", "Type=service\n[Pool]\nSpare=1\n");
    ck_assert_ptr_nonnull(strstr(load_problems(), "Spare= is above 0"));
}

TEST(only_jobs_are_durable)
{
    write_group("a", "Type=service\n[Jobs]\nDurable=yes\n");
    ck_assert_ptr_nonnull(strstr(load_problems(), "Durable=yes needs jobs"));
}

TEST(every_key_of_the_pool_jobs_and_restarts_is_read)
{
    struct config_group *group = load_group(
        "[Pool]\nSize=4\nMaxJobs=100\nPrefetch=8\nBatchMax=20\nMaxMemory=64M\nMaxAgeSec="
        "1h\n"
        "[Jobs]\nDurable=yes\nQueueMax=5\nQueueMemoryMax=1M\nTimeoutSec=1min 30s\nMaxRetries=7\n"
        "BackoffMinSec=1\nBackoffMaxSec=2\nBackoffRandom=50%\nResultTTLSec=0\nResultsMax=0\n"
        "NoProgressSec=2min\n[Restart]\nRestart=always\nMinSec=3\nMaxSec="
        "4\nRandom=0\nResetAfterSec=infinity\n"
        "StartLimitBurst=0\nStartLimitIntervalSec=1h\n");

    ck_assert_uint_eq(group->size.low, 4);
    ck_assert_uint_eq(group->max_jobs, 100);
    ck_assert_uint_eq(group->max_memory, 64 << 20);
    ck_assert_uint_eq(group->max_age, 3600 * USEC_PER_SEC);
    ck_assert_uint_eq(group->no_progress, 120 * USEC_PER_SEC);
    ck_assert_uint_eq(group->batch_max, 20);
    ck_assert_uint_eq(group->prefetch, 8);
    ck_assert(group->durable);
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
}

TEST(every_key_of_workers_and_resources_is_read)
{
    struct config_group *group = load_group(
        "Type=service\nDescription=Digests of files\nWorkingDirectory=/tmp\n"
        "[Worker]\nTimeoutStartSec=1\nTimeoutStopSec=2\nWatchdogSec=3\nKillSignal=INT\n"
        "ReloadSignal=HUP\nKillMode=mixed\nMailboxSize=1M\nInlineMax=4K\nSpinUsec=1ms\nMailboxMax="
        "7\nMailboxMemoryMax=1M\n"
        "Overflow=drop-oldest\nOnCrash=error-queue\nMessageRetries=0\n"
        "[Resources]\nMemoryMax=64M\nMemoryHigh=32M\nCPUWeight=50\nCPUQuota=150%\nTasksMax=10\n"
        "MemorySwapMax=0\nAllowedCPUs=0\nAllowedCPUs=0-0 0\nIOWeight=70\n"
        "LimitNOFILE=1024\nLimitCORE=0\nLimitAS=infinity\nNice=-5\nOOMScoreAdjust=-500\n");

    ck_assert_uint_eq(group->mailbox_max, 7);
    ck_assert_uint_eq(group->mailbox_memory_max, 1 << 20);
    ck_assert_int_eq(group->overflow, CONFIG_OVERFLOW_DROP_OLDEST);
    ck_assert_int_eq(group->on_crash, CONFIG_ON_CRASH_ERROR_QUEUE);
    ck_assert_uint_eq(group->message_retries, 0);
    ck_assert_int_eq(group->type, CONFIG_SERVICE);
    ck_assert_str_eq(group->description, "Digests of files");
    ck_assert_str_eq(group->working_directory, "/tmp");
    ck_assert_uint_eq(group->timeout_start, USEC_PER_SEC);
    ck_assert_uint_eq(group->timeout_stop, 2 * USEC_PER_SEC);
    ck_assert_uint_eq(group->watchdog, 3 * USEC_PER_SEC);
    ck_assert_int_eq(group->kill_signal, SIGINT);
    ck_assert_int_eq(group->reload_signal, SIGHUP);
    ck_assert_int_eq(group->kill_mode, CONFIG_KILL_MIXED);
    ck_assert_uint_eq(group->mailbox_size, 1 << 20);
    ck_assert_uint_eq(group->inline_max, 4096);
    ck_assert_uint_eq(group->spin, 1000);
    ck_assert_uint_eq(group->memory_max, 64 << 20);
    ck_assert_uint_eq(group->memory_high, 32 << 20);
    ck_assert_uint_eq(group->cpu_weight, 50);
    ck_assert_uint_eq(group->cpu_quota_percent, 150);
    ck_assert_uint_eq(group->tasks_max, 10);
    ck_assert_uint_eq(group->memory_swap_max, 0);
    ck_assert_str_eq(group->allowed_cpus, "0,0-0,0");
    ck_assert_uint_eq(group->io_weight, 70);
    ck_assert(group->limit_nofile_set && group->limit_core_set && group->limit_as_set);
    ck_assert_uint_eq(group->limit_nofile, 1024);
    ck_assert_uint_eq(group->limit_core, 0);
    ck_assert_uint_eq(group->limit_as, RLIM_INFINITY);
    ck_assert(group->nice_set && group->oom_score_adjust_set);
    ck_assert_int_eq(group->nice, -5);
    ck_assert_int_eq(group->oom_score_adjust, -500);
}

TEST(every_key_of_the_daemon_is_read)
{
    const struct group *root = getgrgid(0);
    char text[256];

    ck_assert_ptr_nonnull(root);
    snprintf(text, sizeof(text),
             "[Supervisor]\nAdminGroup=%s\nClientsMax=7\nClientIdleSec=5min\nDeathsMax=8\n"
             "DeadLettersMax=0\nDeadLettersMemoryMax=1M\nTimeoutStopSec=infinity\nLogLevel=debug\n"
             "SpinUsec=0\n",
             root->gr_name);
    write_file("troupe.conf", text);
    struct config *config = load();
    ck_assert_str_eq(config->daemon.admin_group, root->gr_name);
    ck_assert_uint_eq(config->daemon.admin_gid, 0);
    ck_assert_uint_eq(config->daemon.clients_max, 7);
    ck_assert_uint_eq(config->daemon.spin, 0);
    ck_assert_uint_eq(config->daemon.client_idle, 300 * USEC_PER_SEC);
    ck_assert_uint_eq(config->daemon.deaths_max, 8);
    ck_assert_uint_eq(config->daemon.dead_letters_max, 0);
    ck_assert_uint_eq(config->daemon.dead_letters_memory_max, 1 << 20);
    ck_assert_uint_eq(config->daemon.timeout_stop, USEC_INFINITY);
    ck_assert_int_eq(config->daemon.log_level, LOG_LEVEL_DEBUG);
}

TEST(a_timeout_of_zero_is_none)
{
    struct config_group *group =
        load_group("[Jobs]\nTimeoutSec=0\n[Worker]\nWatchdogSec=0\nTimeoutStartSec=0\n");

    ck_assert_uint_eq(group->timeout, USEC_INFINITY);
    ck_assert_uint_eq(group->watchdog, USEC_INFINITY);
    ck_assert_uint_eq(group->timeout_start, USEC_INFINITY);
}

TEST(later_assignments_override_and_empty_ones_go_back_to_the_default)
{
    struct config_group *group = load_group("Description=x\nDescription=\n"
                                            "ExecStart=\nExecStart=/bin/false now\n"
                                            "[Pool]\nSize=4\nSize=5\n[Pool]\nMaxJobs=9\nMaxJobs=\n"
                                            "[Resources]\nNice=5\nNice=\nMemoryMax=1M\nMemoryMax=\n"
                                            "LimitCORE=0\nLimitCORE=\nCPUWeight=5\nCPUWeight=\n"
                                            "AllowedCPUs=0\nAllowedCPUs=\n");

    ck_assert_str_eq(group->description, "");
    ck_assert_str_eq(group->exec_start[0], "/bin/false");
    ck_assert_str_eq(group->exec_start[1], "now");
    ck_assert_uint_eq(group->size.low, 5);
    ck_assert_uint_eq(group->max_jobs, 0);
    ck_assert(!group->nice_set);
    ck_assert(!group->limit_core_set);
    ck_assert_uint_eq(group->memory_max, CONFIG_UNSET);
    ck_assert_uint_eq(group->cpu_weight, CONFIG_UNSET);
    ck_assert_ptr_null(group->allowed_cpus);
}

/* ---- comparing ---- */

static uint32_t digest_of(struct config_group *group)
{
    ck_assert_int_eq(config_group_set_digest(group), 0);
    ck_assert_uint_ne(group->process_digest, 0);
    return group->process_digest;
}

TEST(policies_change_without_another_process)
{
    struct config_group *a = load_group("");
    struct config_group *b = load_group("Description=x\nAfter=\n[Pool]\nSize=9\nMaxJobs=1\n"
                                        "[Jobs]\nQueueMax=1\nTimeoutSec=1\n[Restart]\nMaxSec=1\n"
                                        "[Worker]\nTimeoutStopSec=1\nKillSignal=INT\n");

    ck_assert(config_group_equal(a, a));
    ck_assert(!config_group_equal(a, b));
    ck_assert(config_group_same_process(a, b));
    ck_assert_uint_eq(digest_of(a), digest_of(b));
}

TEST(ends_that_are_no_failure_are_exit_statuses_and_signals)
{
    struct config_group *group = load_group("Type=service\n[Restart]\n"
                                            "SuccessExitStatus=3\nSuccessExitStatus=255 SIGINT\n"
                                            "RestartPreventExitStatus=64 TERM\n"
                                            "RestartPreventExitStatus=\n");

    ck_assert_uint_eq(group->success.codes[0], 1 << 3);
    ck_assert_uint_eq(group->success.codes[3], UINT64_C(1) << 63);
    ck_assert_uint_eq(group->success.signals, 1 << (SIGINT - 1));
    ck_assert_uint_eq(group->no_restart.codes[1], 0);
    ck_assert_uint_eq(group->no_restart.signals, 0);
}

TEST(what_a_process_is_started_with_makes_another_process)
{
    static const char *const changes[] = {
        "ExecStart=/bin/true x\n",
        "Type=service\n",
        "User=nobody\n",
        "Group=nogroup\n",
        "WorkingDirectory=/tmp\n",
        "Environment=A=1\n",
        "Environment=A=2\n",
        "Environment=A=1 B=\n",
        "[Worker]\nWatchdogSec=1\n",
        "[Worker]\nMailboxSize=1M\n",
        "[Worker]\nInlineMax=1K\n",
        "[Resources]\nMemoryMax=1G\n",
        "[Resources]\nMemorySwapMax=0\n",
        "[Resources]\nAllowedCPUs=0\n",
        "[Resources]\nIOWeight=1\n",
        "[Resources]\nNice=0\n",
        "[Resources]\nLimitCORE=0\n",
        "[Sandbox]\nUMask=0022\n",
        "[Sandbox]\nNoNewPrivileges=yes\n",
        "[Sandbox]\nSystemCallFilter=@system-service\n",
        "[Sandbox]\nSystemCallFilter=~@system-service\n",
        "[Sandbox]\nRestrictNamespaces=yes\n",
        "[Sandbox]\nProtectSystem=yes\n",
        "[Sandbox]\nReadOnlyPaths=/usr\n",
        "[Sandbox]\nReadOnlyPaths=-/usr\n",
        "[Sandbox]\nPrivateTmp=yes\n",
    };
    struct config_group *a = load_group("");
    uint32_t digests[ELEMENTS(changes)];

    for (size_t i = 0; i < ELEMENTS(changes); i++) {
        struct config_group *b = load_group(changes[i]);

        digests[i] = digest_of(b);
        ck_assert_msg(digests[i] != digest_of(a), "%s", changes[i]);
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(digests[i] != digests[j], "%s%s", changes[i], changes[j]);

        ck_assert_msg(!config_group_same_process(a, b), "%s", changes[i]);
        ck_assert_msg(!config_group_equal(a, b), "%s", changes[i]);
        ck_assert(config_group_same_process(b, b));
    }
}

TEST(the_groups_of_its_user_make_another_process)
{
    struct config_group *a = load_group(""), *b = load_group("");
    const uint32_t before = digest_of(a);

    free(b->groups);
    b->groups = calloc(1, sizeof(*b->groups));
    b->groups[0] = 4711;
    b->n_groups = 1;
    ck_assert_uint_ne(digest_of(b), before);
    ck_assert(!config_group_same_process(a, b));
    ck_assert(config_group_same_process(b, b));
}

const struct suite suite = {.setup = config_test_enter, .teardown = config_test_leave};
