/* SPDX-License-Identifier: MIT */

/* Problems of single keys and values. */

#include "tests/unit/config-directory.h"
#include "tests/unit/suite.h"

/* ---- what is wrong ---- */

TEST(unknown_words_are_problems_with_the_nearest_one)
{
    write_group("a", "Descriptoin=x\nSize=2\n[Pol]\nSize=0\n[Pool]\nSise=1\nBanana=2\n"
                     "[Fruit]\nx=y\n[jobs]\n");
    ck_assert_str_eq(
        load_problems(),
        "a.group:3: unknown key 'Descriptoin' in [Group]; did you mean 'Description'?\n"
        "a.group:4: unknown key 'Size' in [Group]; it belongs in [Pool]\n"
        "a.group:5: unknown section [Pol]; did you mean [Pool]?\n"
        "a.group:8: unknown key 'Sise' in [Pool]; did you mean 'Size'?\n"
        "a.group:9: unknown key 'Banana' in [Pool]; allowed: Size, TargetWaitSec, IdleSec, "
        "MemoryPressureThresholdSec, CPUPressureThresholdSec, IOPressureThresholdSec, PoolMax, "
        "Spare, Template, TemplateMaxAgeSec, Cells, CellsMax, CellIdleSec, CellsQueueMemoryMax, "
        "Prefetch, MaxJobs, MaxMemory, MaxAgeSec, BatchMax\n"
        "a.group:10: unknown section [Fruit]; allowed: [Group], [Pool], [Jobs], [Limits], "
        "[Restart], "
        "[Worker], [Resources], [Sandbox]\n"
        "a.group:12: unknown section [jobs]; did you mean [Jobs]?\n");
}

TEST(all_problems_of_all_files_come_in_one_run)
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
        "a.group:2: Type=actr: unknown; allowed: actor, service, notify\n"
        "a.group:3: neither [Section], Key=value, nor a comment (# or ;)\n"
        "b.group:4: Size=4097: out of range; allowed: a number from 1 to 4096, a share of "
        "the processors from 1% to 1000%, or a range such as 2..16, 0..8 or 2..auto (auto: the "
        "number of processors)\n");
}

TEST(values_that_are_none_are_problems_of_one_key)
{
    static const struct {
        const char *section, *assignment, *reason;
    } cases[] = {
        {"Pool", "Size=x", "no valid value"},
        {"Pool", "Size=infinity", "out of range"},
        {"Pool", "Size=0%", "out of range"},
        {"Pool", "Size=1001%", "out of range"},
        {"Pool", "Size=50 %%", "no valid value"},
        {"Jobs", "Durable=maybe", "unknown"},
        {"Jobs", "QueueMax=0", "out of range"},
        {"Jobs", "QueueMemoryMax=infinity", "out of range"},
        {"Jobs", "MaxRetries=1000001", "out of range"},
        {"Jobs", "TimeoutSec=soon", "no valid value"},
        {"Jobs", "BackoffMaxSec=infinity", "out of range"},
        {"Jobs", "BackoffRandom=1.1", "out of range"},
        {"Restart", "Restart=on-abort", "unknown"},
        {"Worker", "KillSignal=SIGNONE", "no valid value"},
        {"Worker", "KillSignal=99", "out of range"},
        {"Worker", "MailboxSize=8K", "out of range"},
        {"Worker", "MailboxSize=2G", "out of range"},
        {"Resources", "MemoryMax=0", "out of range"},
        {"Resources", "CPUWeight=10001", "out of range"},
        {"Resources", "IOWeight=0", "out of range"},
        {"Resources", "AllowedCPUs=1-", "no valid value"},
        {"Resources", "AllowedCPUs=8192", "out of range"},
        {"Resources", "CPUQuota=50", "no valid value"},
        {"Resources", "LimitNOFILE=1024:4096", "no valid value"},
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

        snprintf(more, sizeof(more), "[%s]\n%s\n", cases[i].section, cases[i].assignment);
        write_group("a", more);
        snprintf(expected, sizeof(expected), "a.group:4: %s: %s; allowed: ", cases[i].assignment,
                 cases[i].reason);
        const char *problems = load_problems();
        ck_assert_msg(strncmp(problems, expected, strlen(expected)) == 0, "%s", problems);
        ck_assert_ptr_eq(strchr(problems, '\n'), problems + strlen(problems) - 1);
    }
}

TEST(quoted_values_can_neither_flood_nor_steer_the_terminal)
{
    char text[4096], *at = text;

    at += sprintf(at, "[Group]\nType=\x1b[31m");
    memset(at, 'x', 2000);
    strcpy(at + 2000, "\n" PROGRAM);
    write_file("a.group", text);
    const char *problems = load_problems();
    ck_assert_uint_lt(strlen(problems), 200);
    ck_assert_ptr_nonnull(strstr(problems, "Type=?[31mxxx"));
    ck_assert_ptr_null(strchr(problems, '\x1b'));
}

TEST(a_text_that_is_cut_stays_valid)
{
    char text[4096] = "[Group]\n" PROGRAM "Type=x";

    for (size_t i = 0; i < 100; i++)
        strcat(text, "\xc3\xa4");
    write_file("a.group", text);
    const char *problems = load_problems();
    ck_assert_ptr_nonnull(strstr(problems, "\xc3\xa4?: unknown"));
}

TEST(files_that_cannot_be_read_are_problems)
{
    ck_assert_int_eq(mkdir("a.group", 0755), 0);
    ck_assert_int_eq(symlink("nowhere", "b.group"), 0);
    write_group("c", "After=a\n");
    ck_assert_str_eq(load_problems(), "a.group:0: not a regular file\n"
                                      "b.group:0: no such file\n");
}

const struct suite suite = {.setup = config_test_enter, .teardown = config_test_leave};
