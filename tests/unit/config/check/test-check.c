/* SPDX-License-Identifier: MIT */

/* Checks of whole groups, against this machine, and of single files. */

#include "supervisor/config/check/resolve.h"
#include "supervisor/config/syntax/strings.h"
#include "tests/unit/config-directory.h"
#include "tests/unit/suite.h"
#include <grp.h>
#include <pwd.h>

/* ---- programs ---- */

TEST(the_program_must_exist_and_be_executable)
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

TEST(a_program_by_name_is_looked_for_on_the_path)
{
    struct config_group *group = load_group("ExecStart=true --flag\n");

    ck_assert(strcmp(group->exec_start[0], "/usr/bin/true") == 0 ||
              strcmp(group->exec_start[0], "/bin/true") == 0);
    ck_assert_str_eq(group->exec_start[1], "--flag");
    write_file("a.group", "[Group]\nExecStart=no-such-program-here x\n");
    ck_assert_str_eq(load_problems(),
                     "a.group:2: ExecStart=: program 'no-such-program-here' is not on the path "
                     "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
}

TEST(command_lines_that_cannot_be_run_are_problems)
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

        snprintf(text, sizeof(text), "[Group]\nExecStart=%s\n", cases[i][0]);
        write_file("a.group", text);
        snprintf(expected, sizeof(expected), "a.group:2: ExecStart=%s: %s; allowed: ", cases[i][0],
                 cases[i][1]);
        const char *problems = load_problems();
        ck_assert_msg(strncmp(problems, expected, strlen(expected)) == 0, "%s", problems);
        ck_assert_ptr_eq(strchr(problems, '\n'), problems + strlen(problems) - 1);
    }
}

TEST(each_slot_has_its_own_command_line)
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
    ck_assert_ptr_null(strv_free(argv));
    ck_assert_ptr_null(strv_free(NULL));
}

/* ---- users ---- */

TEST(users_and_groups_are_resolved_by_name_and_by_number)
{
    const struct passwd *user = getpwnam("nobody");
    char more[128];

    ck_assert_ptr_nonnull(user);
    uid_t uid = user->pw_uid;
    gid_t gid = user->pw_gid;
    struct config_group *group = load_group("User=nobody\n");
    ck_assert_uint_eq(group->uid, uid);
    ck_assert_uint_eq(group->gid, gid);
    snprintf(more, sizeof(more), "User=%u\nGroup=0\n", uid);
    group = load_group(more);
    ck_assert_str_eq(group->user, "nobody");
    ck_assert_uint_eq(group->uid, uid);
    ck_assert_uint_eq(group->gid, 0);
    ck_assert_str_eq(group->group_name, getgrgid(0)->gr_name);
    group = load_group("Group=0\n");
    ck_assert_uint_eq(group->uid, geteuid());
    ck_assert_uint_eq(group->gid, 0);
}

TEST(unknown_users_and_groups_are_problems)
{
    write_file("troupe.conf", "[Supervisor]\nAdminGroup=no-such-group\n");
    write_group("a", "User=no-such-user\nGroup=4294967296\n");
    ck_assert_str_eq(load_problems(),
                     "troupe.conf:2: AdminGroup=no-such-group: unknown group; allowed: the name or "
                     "number of an existing group\n"
                     "a.group:3: User=no-such-user: unknown user; allowed: the name or number of "
                     "an existing user\n"
                     "a.group:4: Group=4294967296: unknown group; allowed: the name or number of "
                     "an existing group\n");
}

TEST(another_user_need_not_be_the_one_who_may_execute)
{
    char text[512];

    write_file("program", "");
    ck_assert_int_eq(chmod("program", 0010), 0);
    snprintf(text, sizeof(text), "ExecStart=%s/program\nUser=nobody\n", config_test_directory);
    load_group(text);
    ck_assert_int_eq(chmod("program", 0600), 0);
    ck_assert_ptr_nonnull(strstr(load_problems(), "not executable"));
}

TEST(the_working_directory_must_be_one)
{
    write_group("a", "WorkingDirectory=/nonexistent\n");
    write_group("b", "WorkingDirectory=/etc/passwd\n");
    ck_assert_str_eq(load_problems(),
                     "a.group:3: WorkingDirectory=/nonexistent: No such file or directory; "
                     "allowed: an existing directory\n"
                     "b.group:3: WorkingDirectory=/etc/passwd: not a directory; allowed: an "
                     "existing directory\n");
}

/* ---- what must fit together ---- */

TEST(the_mailbox_is_rounded_up_and_bounds_what_is_inline)
{
    struct config_group *group = load_group("[Worker]\nMailboxSize=100K\nInlineMax=32K\n");

    ck_assert_uint_eq(group->mailbox_size, 128 << 10);
    ck_assert_uint_eq(group->inline_max, 32 << 10);
    group = load_group("[Worker]\nMailboxSize=16K\n");
    ck_assert_uint_eq(group->mailbox_size, 16 << 10);
    ck_assert_uint_eq(group->inline_max, 4 << 10);
    write_group("a", "[Worker]\nInlineMax=4097\nMailboxSize=16K\n");
    ck_assert_str_eq(load_problems(), "a.group:4: InlineMax= (4097) is above a quarter of "
                                      "MailboxSize= (16384); allowed: up to 4096\n");
}

TEST(an_empty_assignment_takes_a_key_back)
{
    struct config_group *group =
        load_group("[Worker]\nInlineMax=1M\nInlineMax=\nMailboxSize=16K\n");

    ck_assert_uint_eq(group->inline_max, 4 << 10);
    write_group("a", "ExecStart=\n");
    ck_assert_str_eq(load_problems(),
                     "a.group:0: ExecStart= is missing in [Group]: which program to run\n");
}

TEST(a_minimum_above_its_maximum_is_a_problem)
{
    write_group("a", "[Jobs]\nBackoffMinSec=1min\n[Restart]\nMinSec=5\nMaxSec=4\n");
    ck_assert_str_eq(load_problems(),
                     "a.group:4: BackoffMinSec= (60000 ms) is above BackoffMaxSec= (30000 ms); "
                     "allowed: up to BackoffMaxSec=\n"
                     "a.group:7: MinSec= (5000 ms) is above MaxSec= (4000 ms); allowed: up to "
                     "MaxSec=\n");
}

TEST(groups_start_after_groups_that_exist)
{
    write_group("a", "After=b c\nAfter=b\n");
    write_group("b", "After=c\n");
    write_group("c", "");
    struct config *config = load();
    ck_assert_uint_eq(config->groups[0]->after.n, 2);
    ck_assert_str_eq(config->groups[0]->after.strings[0], "b");
    ck_assert_str_eq(config->groups[0]->after.strings[1], "c");
    write_group("a", "After=bb other\n");
    ck_assert_str_eq(load_problems(),
                     "a.group:3: After=bb: unknown group; did you mean 'b'?\n"
                     "a.group:3: After=other: unknown group; allowed: names of NAME.group files\n");
}

TEST(a_group_for_jobs_that_ran_out_of_memory_can_take_them)
{
    write_group("small", "[Jobs]\nOnOom=big\n");
    write_group("big", "");
    struct config *config = load();
    ck_assert_str_eq(config->groups[1]->on_oom, "big");
    write_group("keyed", "[Pool]\nCells=by-key\n[Jobs]\nOnOom=keys\n");
    write_group("keys", "[Pool]\nCells=by-key\n");
    load();
}

TEST(one_that_cannot_is_a_problem)
{
    write_group("a", "[Jobs]\nOnOom=bigg\n");
    write_group("b", "[Jobs]\nOnOom=b\n");
    write_group("big", "[Jobs]\nDurable=yes\n");
    write_group("c", "[Jobs]\nOnOom=web\n");
    write_group("d", "[Jobs]\nOnOom=big\n");
    write_group("e", "[Jobs]\nOnOom=keyed\n");
    write_group("f", "[Jobs]\nOnOom=a\n");
    write_group("g", "Type=service\n[Jobs]\nOnOom=big\n");
    write_group("keyed", "[Pool]\nCells=by-key\n");
    write_group("web", "Type=service\n");
    ck_assert_str_eq(
        load_problems(),
        "g.group:5: OnOom= needs jobs, which a service has none of; allowed: nothing, or "
        "Type=actor\n"
        "a.group:4: OnOom=bigg: unknown group; did you mean 'big'?\n"
        "b.group:4: OnOom=b: a job that ran out of memory would find no more in the same group; "
        "allowed: the name of another group\n"
        "c.group:4: OnOom=web: it is a service, which takes no jobs; allowed: a group with "
        "Type=actor\n"
        "d.group:4: OnOom=big: only one of the two groups has Durable=yes; allowed: the same "
        "Durable= in both\n"
        "e.group:4: OnOom=keyed: it has Cells=by-key, and jobs of this group may have no key; "
        "allowed: a group without cells, or Cells=by-key in both\n"
        "f.group:4: OnOom=a: it also has OnOom=, and a job moves only once; allowed: a group "
        "without OnOom=\n");
}

TEST(groups_that_wait_for_each_other_are_a_problem)
{
    write_group("a", "After=b\n");
    write_group("b", "After=c d\n");
    write_group("c", "After=b\n");
    write_group("d", "After=d\n");
    ck_assert_str_eq(load_problems(),
                     "b.group:3: After= makes groups wait for each other: b -> c -> b\n"
                     "d.group:3: After= makes groups wait for each other: d -> d\n");
}

TEST(a_long_circle_is_told_in_short)
{
    for (unsigned i = 0; i < 100; i++) {
        char name[64], more[64];

        snprintf(name, sizeof(name), "a-group-with-a-long-name-%02u", i);
        snprintf(more, sizeof(more), "After=a-group-with-a-long-name-%02u\n", (i + 1) % 100);
        write_group(name, more);
    }
    const char *problems = load_problems();
    ck_assert_ptr_nonnull(strstr(problems, "... -> a-group-with-a-long-name-00\n"));
    ck_assert_uint_lt(strlen(problems), 512);
}

/* ---- single files ---- */

static const char *verify(const char *path, int expected)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;

    ck_assert_int_eq(config_verify_file(path, &problems), expected);
    const char *text = describe(&problems);
    config_problems_deinit(&problems);
    return text;
}

TEST(single_files_are_verified_by_their_kind)
{
    write_group("a", "After=b\n[Pool]\nSize=0\n");
    write_file("troupe.conf", "[Supervisor]\nDeathsMax=x\n");
    ck_assert_int_eq(mkdir("a.group.d", 0755), 0);
    write_file("a.group.d/x.conf", "[Pool]\nMaxJobs=x\n");
    write_file("notes.txt", "");
    ck_assert_str_eq(
        verify("a.group", CONFIG_E_INVALID),
        "a.group:3: After=b: unknown group; allowed: names of NAME.group files\n"
        "a.group:5: Size=0: out of range; allowed: a number from 1 to 4096, a share "
        "of the processors from 1% to 1000%, or a range such as 2..16, 0..8 or 2..auto (auto: the "
        "number of processors)\n"
        "a.group.d/x.conf:2: MaxJobs=x: no valid value; allowed: a number from 0 "
        "(never) to 1000000000\n");
    ck_assert_ptr_nonnull(strstr(verify("troupe.conf", CONFIG_E_INVALID), "troupe.conf:2: Deaths"));
    ck_assert_ptr_nonnull(strstr(verify("./a.group.d/x.conf", CONFIG_E_INVALID), "x.conf:2: MaxJ"));
    ck_assert_ptr_nonnull(strstr(verify("notes.txt", CONFIG_E_INVALID), "troupe.conf, NAME.group"));
    ck_assert_ptr_nonnull(strstr(verify(".", CONFIG_E_INVALID), "troupe.conf:2: Deaths"));
    ck_assert_str_eq(verify("missing.group", -ENOENT), "");
}

TEST(an_exchange_may_not_share_its_name_with_a_group)
{
    write_group("a", "");
    write_file("a.exchange", "[Exchange]\nType=single\n");
    ck_assert_ptr_nonnull(strstr(verify(".", CONFIG_E_INVALID), "a.exchange:0: there is a group"));
    ck_assert_str_eq(verify("a.exchange", 0), "");
}

TEST(what_is_wrong_with_an_exchange_is_told)
{
    write_file("e.exchange", "[Exchange]\nType=topic\n[Group]\nType=actor\n");
    ck_assert_str_eq(verify("e.exchange", CONFIG_E_INVALID),
                     "e.exchange:2: Type=topic: unknown; allowed: single, typed-single, "
                     "typed-multi, routing-key, pattern\n"
                     "e.exchange:3: unknown section [Group]; allowed: [Exchange]\n");
    write_file("-.exchange", "");
    ck_assert_ptr_nonnull(strstr(verify("-.exchange", CONFIG_E_INVALID), "not a possible name"));
}

TEST(good_single_files_have_no_problems)
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
                     "a.group:3: After= makes groups wait for each other: a -> a\n");
}

/* A list is searched for every string that is added to it. */
TEST(a_list_without_end_is_a_problem_not_a_wait)
{
    const size_t n = 100000;
    char *text = malloc(n * 10 + 64), *at;

    ck_assert_ptr_nonnull(text);
    at = text + sprintf(text, "[Group]\n" PROGRAM "Environment=");
    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "A%zu=1 ", i);
    write_file("words.group", text);
    at = text + sprintf(text, "[Group]\n" PROGRAM "ExecStart=/bin/true");
    for (size_t i = 0; i < n; i++)
        at += sprintf(at, " a");
    write_file("argv.group", text);
    free(text);
    ck_assert_ptr_nonnull(strstr(load_problems(), "more than 4096 words"));
}

/* ---- environment ---- */

TEST(files_override_the_environment_in_their_order)
{
    char more[512];

    write_file("one", "A=one\nB=one\n");
    write_file("two", "# comment\nB=\"two words\"\n");
    snprintf(more, sizeof(more),
             "EnvironmentFile=%s/one\nEnvironmentFile=-%s/missing\nEnvironmentFile=%s/two\n"
             "Environment=A=0 \"C=x y\" D=\n",
             config_test_directory, config_test_directory, config_test_directory);
    struct config_group *group = load_group(more);
    ck_assert_uint_eq(group->environment.n, 4);
    ck_assert_str_eq(group->environment.strings[0], "A=one");
    ck_assert_str_eq(group->environment.strings[1], "C=x y");
    ck_assert_str_eq(group->environment.strings[2], "D=");
    ck_assert_str_eq(group->environment.strings[3], "B=two words");
    ck_assert_uint_eq(group->environment_files.n, 3);
}

TEST(a_group_that_is_tried_again_gets_its_environment_anew)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config *config;
    char more[512];

    write_file("one", "A=old\n");
    snprintf(more, sizeof(more), "ExecStart=\nExecStart=%s/program\nEnvironmentFile=%s/one\n",
             config_test_directory, config_test_directory);
    write_group("a", more);
    ck_assert_int_eq(config_read(&config, ".", &problems), 0);
    struct config_group *group = config->groups[0];
    ck_assert_int_eq(config_resolve_now(config, &problems), 0);
    ck_assert_ptr_nonnull(strstr(group->fault, "no such file"));
    write_file("one", "B=new\n");
    ck_assert_int_eq(symlink("/bin/true", "program"), 0);
    ck_assert_int_eq(config_resolve_now(config, &problems), 0);
    ck_assert_ptr_null(group->fault);
    ck_assert_str_eq(group->environment.strings[0], "B=new");
    ck_assert_ptr_null(group->environment.strings[1]);
    config_free(config);
    config_problems_deinit(&problems);
}

TEST(problems_of_environment_files_are_found)
{
    char more[512], expected[1024];

    write_file("one", "A=1\nnonsense\n");
    snprintf(more, sizeof(more), "EnvironmentFile=%s/one\nEnvironmentFile=%s/missing\n",
             config_test_directory, config_test_directory);
    write_group("a", more);
    snprintf(expected, sizeof(expected),
             "%s/one:2: not KEY=VALUE with a KEY of letters, digits and _\n"
             "a.group:4: EnvironmentFile=%s/missing: No such file or directory; allowed: a "
             "readable file, or - in front if it may be missing\n",
             config_test_directory, config_test_directory);
    ck_assert_str_eq(load_problems(), expected);
}

const struct suite suite = {.setup = config_test_enter, .teardown = config_test_leave};
