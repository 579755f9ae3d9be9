/* SPDX-License-Identifier: MIT */

/*
 * Reads the input as a group's file, as troupe.conf and as an environment file. What is accepted
 * must be usable, and every problem must be text. Uses no file system and no user database.
 */

#include "shared/base/utf8.h"
#include "supervisor/config/config.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/syntax/envfile.h"
#include "supervisor/config/syntax/strings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

static void check_problems(struct config_problems *problems)
{
    for (size_t i = 0; i < problems->n_problems; i++) {
        const char *text = problems->problems[i].text;

        require(utf8_is_text(text, strlen(text)), "a problem is not text");
        require(!strpbrk(text, "\n\x1b"), "a problem has control characters");
        require(i == 0 || problems->problems[i].line >= problems->problems[i - 1].line,
                "problems are not in the order of their lines");
    }
    config_problems_deinit(problems);
}

static void check_values(const struct config_group *group)
{
    char **argv;

    require(group->size >= 1 && group->size <= 4096, "Size");
    require(group->backoff_random >= 0 && group->backoff_random <= 1, "BackoffRandom");
    require(group->queue_max >= 1 && group->queue_max != CONFIG_UNSET, "QueueMax");
    require(group->watchdog > 0 && group->timeout > 0, "a time-out of 0");
    require(group->kill_signal > 0, "KillSignal");
    require(group->description != NULL, "Description");
    if (!group->exec_start)
        return;
    require(group->exec_start[0][0] != '\0', "an empty program");
    require(config_expand_argv(group, 4095, &argv) == 0, "a command line that cannot be expanded");
    strv_free(argv);
}

static void try_group(const char *text, size_t size)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config_group *group;

    if (config_defaults(&group, "fuzz") < 0)
        return;
    group->draft = config_draft_new(&CONFIG_GROUP_SCHEMA, group, &problems);
    if (group->draft && config_draft_parse(group->draft, "fuzz.group", text, size) == 0) {
        check_values(group);
        require(config_group_equal(group, group), "a group differs from itself");
    }
    check_problems(&problems);
    config_group_free(group);
}

static void try_daemon(const char *text, size_t size)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config_daemon daemon = {0};
    struct config_draft *draft = config_draft_new(&CONFIG_DAEMON_SCHEMA, &daemon, &problems);

    if (draft && config_schema_defaults(&CONFIG_DAEMON_SCHEMA, &daemon) == 0)
        (void)config_draft_parse(draft, "troupe.conf", text, size);
    config_draft_free(draft);
    check_problems(&problems);
    config_schema_clear(&CONFIG_DAEMON_SCHEMA, &daemon);
}

static int ignore(void *userdata, unsigned line, const char *text)
{
    require(line > 0, "a line without a number");
    return 0;
}

static void try_environment(const char *text, size_t size)
{
    struct config_strings environment = {0};

    if (envfile_parse(text, size, &environment, ignore, NULL) == 0)
        for (char **variable = environment.strings; variable && *variable; variable++)
            require(envfile_name_valid(*variable, strcspn(*variable, "=")), "a bad name");
    strings_clear(&environment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;

    try_group(text, size);
    try_daemon(text, size);
    try_environment(text, size);
    return 0;
}
