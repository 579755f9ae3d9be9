/* SPDX-License-Identifier: MIT */

/* The verbs verify, which checks configuration files without a supervisor, and sandbox. */

#include "shared/base/cleanup.h"
#include "shared/base/interpreter.h"
#include "supervisor/config/cgroup-limits.h"
#include "supervisor/config/check/check.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/config.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONFIGURATION_DIRECTORY "/etc/troupe"

static int show_problems(const struct invocation *invocation,
                         const struct config_problems *problems)
{
    json_t *list = json_array();
    json_auto_t *document = json_pack("{s:o}", "problems", list);

    for (size_t i = 0; document && i < problems->n_problems; i++) {
        const struct config_problem *problem = &problems->problems[i];
        const char *path = SAFE(problem->path), *text = SAFE_LINE(problem->text);

        if (invocation->options.json)
            json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "path", path, "line",
                                                  (int)problem->line, "text", text));
        else if (problem->line > 0)
            printf("%s:%u: %s\n", path, problem->line, text);
        else
            printf("%s: %s\n", path, text);
    }
    if (!document)
        return call_no_memory();
    return invocation->options.json ? output_json(invocation, document) : EXIT_OK;
}

/* ---- warnings: each function returns how many it has printed ---- */

/* Warns about limits that have no effect on this machine, which is no error in the file. */
static unsigned warn_of_limits(const struct config_group *group)
{
    char keys[CGROUP_UNMET_SIZE];

    if (cgroup_unmet(cgroup_machine_controllers(), group, keys, sizeof(keys)) == 0)
        return 0;
    complain("%s: %s without effect on this machine: it has no cgroup controller for that",
             group->path, keys);
    return 1;
}

/* Warns about a group that runs as root although its file does not say that this is meant. */
static unsigned warn_of_root(const struct config_group *group)
{
    if (geteuid() != 0 || group->user || group->unread)
        return 0;
    complain("%s: it runs as root; set User= in [Group], such as User=troupe, or User=root if "
             "that is meant",
             group->path);
    return 1;
}

/* Warns about paths of the sandbox without which the worker does not start. They may come later. */
static unsigned warn_of_missing_paths(const struct config_group *group)
{
    const struct config_strings *const lists[] = {&group->read_only_paths, &group->read_write_paths,
                                                  &group->inaccessible_paths};
    unsigned n = 0;

    for (size_t i = 0; i < ELEMENTS(lists); i++)
        for (size_t j = 0; j < lists[i]->n; j++) {
            const char *path = lists[i]->strings[j];

            if (*path != '/' || access(path, F_OK) == 0 || errno != ENOENT)
                continue;
            complain("%s: [Sandbox]: %s does not exist, so the worker would not start; put - in "
                     "front if it may be missing",
                     group->path, path);
            n++;
        }
    return n;
}

/* Whether the jobs of a group with troupe-exec would fail because of a missing interpreter. */
static unsigned warn_of_command(const struct config_group *group)
{
    char *const *word = group->exec_start;
    char text[INTERPRETER_TEXT];
    const char *fault = NULL;

    if (!word || !config_ends_with(*word, "/troupe-exec"))
        return 0;
    while (*word && strcmp(*word, "--") != 0)
        word++;
    if (*word && word[1] && word[1][0] == '/')
        fault = interpreter_fault(word[1], text, sizeof(text));
    if (!fault)
        return 0;
    complain("%s: the command '%s' of troupe-exec: %s", group->path, word[1], fault);
    return 1;
}

static unsigned warn_of_root_in_file(const char *path)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config_group *group = NULL;
    unsigned n = 0;

    if (config_ends_with(path, CONFIG_GROUP_SUFFIX) &&
        config_read_group(path, &problems, &group) == 0 && group)
        n = warn_of_root(group) + warn_of_command(group) + warn_of_missing_paths(group);
    config_group_free(group);
    config_problems_deinit(&problems);
    return n;
}

static unsigned warn_of_idle_keys(const struct config_group *group)
{
    char keys[512];

    if (config_idle_keys(group, keys, sizeof(keys)) == 0)
        return 0;
    complain("%s: %s without effect: %s", group->path, keys,
             group->type == CONFIG_ACTOR
                 ? "only cells (Cells=by-key) and ranges (Size=2..16) have them"
                 : "a service takes no jobs or messages");
    return 1;
}

/* Checks all files. Adds the number of warnings to `*warnings`; NULL = prints none. */
static int check_directory(const char *directory, unsigned *warnings,
                           struct config_problems *problems)
{
    struct config *config = NULL;
    int r = config_load(&config, directory, problems);

    for (size_t i = 0; r == 0 && warnings && i < config->n_groups; i++)
        *warnings += warn_of_limits(config->groups[i]) + warn_of_root(config->groups[i]) +
                     warn_of_idle_keys(config->groups[i]) + warn_of_command(config->groups[i]) +
                     warn_of_missing_paths(config->groups[i]);
    config_free(config);
    if (r < 0)
        complain("cannot read the configuration in %s: %s", directory, strerror(-r));
    return r;
}

static int check_files(const struct invocation *invocation, unsigned *warnings,
                       struct config_problems *problems)
{
    int result = 0;

    for (size_t i = 0; i < invocation->n_operands; i++) {
        int r = config_verify_file(invocation->operands[i], problems);

        if (r < 0)
            complain("cannot read %s: %s", invocation->operands[i], strerror(-r));
        if (r == 0 && warnings)
            *warnings += warn_of_root_in_file(invocation->operands[i]);
        if (r < 0 || result == 0)
            result = r;
    }
    return result;
}

int verb_verify(struct invocation *invocation)
{
    const char *directory = invocation->options.config;
    const bool warn = !invocation->options.json && !invocation->options.quiet;
    unsigned warnings = 0;
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    int r, status;

    if (invocation->n_operands > 0)
        r = check_files(invocation, warn ? &warnings : NULL, &problems);
    else
        r = check_directory(directory ? directory : CONFIGURATION_DIRECTORY,
                            warn ? &warnings : NULL, &problems);
    status = r < 0 ? EXIT_FAILED : problems.n_problems > 0 ? EXIT_INVALID : EXIT_OK;
    (void)show_problems(invocation, &problems);
    if (status == EXIT_OK && warn && warnings > 0)
        printf("no errors, %u warning%s\n", warnings, plural(warnings));
    else if (status == EXIT_OK && warn)
        puts("no problems");
    config_problems_deinit(&problems);
    return status;
}

/* ---- sandbox ---- */

/* No line of a suggestion is longer, if its words allow that. */
#define WIDTH 100

static const char KEY[] = "SystemCallFilter=";

static void show_calls(const struct invocation *invocation, const json_t *calls)
{
    char line[2 * WIDTH] = "";
    const json_t *call;
    size_t i;

    terminal_print(&invocation->out, "[Sandbox]");
    json_array_foreach(calls, i, call)
    {
        const char *name = json_string_value(call);

        if (*line && strlen(line) + strlen(name) >= WIDTH) {
            terminal_print(&invocation->out, "%s%s", KEY, SAFE(line));
            *line = '\0';
        }
        (void)snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%.80s",
                       *line ? " " : "", name);
    }
    terminal_print(&invocation->out, "%s%s", KEY, SAFE(line));
}

static void show_suggestion(const struct invocation *invocation, const json_t *suggestion)
{
    show_calls(invocation, json_object_get(suggestion, "system_calls"));
}

static int suggest(struct invocation *invocation, const char *group)
{
    json_auto_t *reply = NULL, *suggestion = NULL;
    const json_t *status, *calls;
    int r = call(invocation, CALL_SUPERVISOR "GetStatus", json_pack("{s:s}", "target", group),
                 false, &reply);

    if (r != EXIT_OK)
        return r;
    status = json_array_get(json_object_get(reply, "groups"), 0);
    calls = json_object_get(status, "system_calls");
    if (json_array_size(calls) == 0) {
        complain(
            "%s: no system calls are recorded; set SystemCallLog=~@default in [Sandbox], reload, "
            "and let it work",
            group);
        return EXIT_FAILED;
    }
    suggestion = json_pack("{s:O}", "system_calls", calls);
    return suggestion ? output_reply(invocation, suggestion, show_suggestion) : call_no_memory();
}

int verb_sandbox(struct invocation *invocation)
{
    if (strcmp(invocation_operand(invocation, 0), "suggest") == 0)
        return suggest(invocation, invocation_operand(invocation, 1));
    complain("usage: troupectl sandbox suggest GROUP");
    return EXIT_USAGE;
}
