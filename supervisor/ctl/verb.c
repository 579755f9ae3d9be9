/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/verb.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/syntax/suggest.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <string.h>

#define ANY_NUMBER SIZE_MAX

/* clang-format off */
const struct verb verb_table[] = {
    {
        .name = "status", .operands = "[TARGET...]", .operands_max = ANY_NUMBER,
        .summary = "The state of groups and workers, problems first (the default verb)",
        .options = OPTIONS_CONNECT | OPTIONS_ALL, .run = verb_status,
    },
    {
        .name = "events", .operands = "[TARGET]", .operands_max = 1,
        .summary = "Past events; with --follow also new ones",
        .options = OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_EVENTS | OPTIONS_RECONNECT,
        .run = verb_events,
    },
    {
        .name = "jobs", .operands = "[GROUP[/CELL]]", .operands_max = 1,
        .summary = "Live jobs; with --ended also those whose results are kept",
        .options = OPTIONS_CONNECT | OPTIONS_ENDED | OPTIONS_STATE | OPTIONS_LIMIT,
        .run = verb_jobs,
    },
    {
        .name = "job", .operands = "ID", .operands_min = 1, .operands_max = 1,
        .summary = "One job; with --follow until its end",
        .options = OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_RECONNECT, .run = verb_job,
    },
    {
        .name = "why", .operands = "TARGET|JOB...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "What a group, cell, worker or job waits for, in a sentence",
        .options = OPTIONS_CONNECT, .run = verb_why,
    },
    {
        .name = "create", .operands = "GROUP [-]", .operands_min = 1, .operands_max = 2,
        .summary = "Submits a job and prints its id",
        .options = OPTIONS_PAYLOAD | OPTIONS_ID | OPTIONS_JOB | OPTIONS_RECONNECT,
        .run = verb_create,
    },
    {
        .name = "do", .operands = "GROUP [-]", .operands_min = 1, .operands_max = 2,
        .summary = "Submits a job, waits for its end and writes its result",
        .options = OPTIONS_PAYLOAD | OPTIONS_ID | OPTIONS_JOB | OPTIONS_RECONNECT,
        .run = verb_do,
    },
    {
        .name = "wait", .operands = "ID", .operands_min = 1, .operands_max = 1,
        .summary = "Waits for the end of a job and writes its result",
        .options = OPTIONS_PATIENCE | OPTIONS_RECONNECT, .run = verb_wait,
    },
    {
        .name = "map", .operands = "GROUP", .operands_min = 1, .operands_max = 1,
        .summary = "Submits a job per line of input, writes results in the same order",
        .options = OPTIONS_JOB | OPTIONS_MAP | OPTIONS_RECONNECT, .run = verb_map,
    },
    {
        .name = "tell", .operands = "ACTOR TYPE [-]", .operands_min = 2, .operands_max = 3,
        .summary = "Sends a message to an actor, without waiting for a reply",
        .options = OPTIONS_CONNECT | OPTIONS_PAYLOAD | OPTIONS_KEY, .run = verb_tell,
    },
    {
        .name = "ask", .operands = "ACTOR TYPE [-]", .operands_min = 2, .operands_max = 3,
        .summary = "Sends a message to an actor and writes its reply",
        .options = OPTIONS_REPLY | OPTIONS_PAYLOAD | OPTIONS_KEY, .run = verb_ask,
    },
    {
        .name = "schedule", .operands = "ACTOR TYPE [-]", .operands_min = 2, .operands_max = 3,
        .summary = "Sends a message later and prints the id of the timer",
        .options = OPTIONS_CONNECT | OPTIONS_PAYLOAD | OPTIONS_KEY | OPTIONS_WHEN,
        .run = verb_schedule,
    },
    {
        .name = "unschedule", .operands = "[ID...]", .operands_max = ANY_NUMBER,
        .summary = "Cancels timers",
        .options = OPTIONS_CONNECT | OPTIONS_OF, .run = verb_unschedule,
    },
    {
        .name = "timers", .operands = "[ACTOR]", .operands_max = 1,
        .summary = "Messages that will be sent later",
        .options = OPTIONS_CONNECT | OPTIONS_LIMIT, .run = verb_timers,
    },
    {
        .name = "actors", .operands = "[ADDRESS]", .operands_max = 1,
        .summary = "Actors, and how many messages wait for each",
        .options = OPTIONS_CONNECT | OPTIONS_LIMIT | OPTIONS_KIND, .run = verb_actors,
    },
    {
        .name = "exchanges", .operands = "[show|create|delete NAME [KIND]]", .operands_max = 3,
        .summary = "Lists, shows, creates and deletes exchanges",
        .options = OPTIONS_CONNECT, .run = verb_exchanges,
    },
    {
        .name = "subscribe", .operands = "EXCHANGE ACTOR [TYPE]", .operands_min = 2,
        .operands_max = 3,
        .summary = "Subscribes an actor to an exchange",
        .options = OPTIONS_CONNECT | OPTIONS_KEY, .run = verb_subscribe,
    },
    {
        .name = "unsubscribe", .operands = "EXCHANGE ACTOR [TYPE]", .operands_min = 2,
        .operands_max = 3,
        .summary = "Ends a subscription of exactly that type and key",
        .options = OPTIONS_CONNECT | OPTIONS_KEY, .run = verb_unsubscribe,
    },
    {
        .name = "dead-letters", .operands = "[list|show ID...]", .operands_max = ANY_NUMBER,
        .summary = "Messages and jobs that were not handled",
        .options = OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_LIMIT, .run = verb_dead_letters,
    },
    {
        .name = "retry", .operands = "[ID...]", .operands_max = ANY_NUMBER,
        .summary = "Submits dead jobs, and sends dead letters, again",
        .options = OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_CHANGE, .run = verb_retry,
    },
    {
        .name = "purge", .operands = "[ID...]", .operands_max = ANY_NUMBER,
        .summary = "Removes dead jobs and dead letters",
        .options = OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_CHANGE, .run = verb_retry,
    },
    {
        .name = "cancel", .operands = "ID... | --all GROUP[/CELL]...", .operands_min = 1,
        .operands_max = ANY_NUMBER,
        .summary = "Cancels jobs, which are not retried",
        .options = OPTIONS_CONNECT | OPTIONS_CANCEL, .run = verb_cancel,
    },
    {
        .name = "resize", .operands = "GROUP[/CELL] N", .operands_min = 2, .operands_max = 2,
        .summary = "Changes the number of a group's or a cell's workers",
        .options = OPTIONS_CONNECT | OPTIONS_WAIT, .run = verb_resize,
    },
    {
        .name = "start", .operands = "TARGET...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Starts groups, cells or workers",
        .options = OPTIONS_CONNECT | OPTIONS_WAIT, .run = verb_change,
    },
    {
        .name = "stop", .operands = "TARGET...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Stops groups, cells or workers after their current jobs",
        .options = OPTIONS_CONNECT | OPTIONS_WAIT | OPTIONS_WITHIN, .run = verb_change,
    },
    {
        .name = "restart", .operands = "TARGET...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Restarts groups, cells or workers after their current jobs",
        .options = OPTIONS_CONNECT | OPTIONS_WAIT, .run = verb_change,
    },
    {
        .name = "reset", .operands = "TARGET...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Starts failed workers immediately, and forgets earlier failures",
        .options = OPTIONS_CONNECT, .run = verb_change,
    },
    {
        .name = "pause", .operands = "GROUP[/CELL]...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Stops handing out jobs; new jobs are queued",
        .options = OPTIONS_CONNECT | OPTIONS_ACTOR, .run = verb_switch,
    },
    {
        .name = "resume", .operands = "[GROUP[/CELL]...]", .operands_max = ANY_NUMBER,
        .summary = "Hands out jobs again",
        .options = OPTIONS_CONNECT | OPTIONS_ACTOR, .run = verb_resume,
    },
    {
        .name = "drain", .operands = "[GROUP...]", .operands_max = ANY_NUMBER,
        .summary = "Takes no new jobs, and waits until none runs: for maintenance",
        .options = OPTIONS_PATIENCE, .run = verb_drain,
    },
    {
        .name = "deaths", .operands = "[TARGET]", .operands_max = 1,
        .summary = "Reports of how and why workers died, newest first",
        .options = OPTIONS_CONNECT | OPTIONS_LIMIT, .run = verb_deaths,
    },
    {
        .name = "sandbox", .operands = "suggest GROUP", .operands_min = 2, .operands_max = 2,
        .summary = "The keys with which a group can do what was recorded",
        .options = OPTIONS_CONNECT, .run = verb_sandbox,
    },
    {
        .name = "logs", .operands = "TARGET|JOB", .operands_min = 1, .operands_max = 1,
        .summary = "What workers or one job wrote; or switches the message log",
        .options = OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_MESSAGES | OPTIONS_RECONNECT,
        .run = verb_logs,
    },
    {
        .name = "top", .operands = "[TARGET]", .operands_max = 1,
        .summary = "Groups as they work, on the whole screen, until Ctrl-C",
        .options = OPTIONS_CONNECT | OPTIONS_ALL | OPTIONS_TOP | OPTIONS_RECONNECT,
        .run = verb_top,
    },
    {
        .name = "metrics", .operands = "",
        .summary = "Numbers for Prometheus and other monitoring systems",
        .options = OPTIONS_CONNECT | OPTIONS_METRICS, .run = verb_metrics,
    },
    {
        .name = "init", .operands = "python NAME", .operands_min = 2, .operands_max = 2,
        .summary = "Writes a group file and a program to begin with",
        .run = verb_init,
    },
    {
        .name = "verify", .operands = "[FILE...]", .operands_max = ANY_NUMBER,
        .summary = "Checks the configuration",
        .options = OPTIONS_CONFIG, .run = verb_verify,
    },
    {
        .name = "reload", .operands = "",
        .summary = "Reads the configuration again",
        .options = OPTIONS_CONNECT | OPTIONS_RELOAD, .run = verb_reload,
    },
    {
        .name = "upgrade", .operands = "",
        .summary = "Replaces the supervisor by the program that is installed now",
        .options = OPTIONS_CONNECT, .run = verb_upgrade,
    },
    {
        .name = "info", .operands = "",
        .summary = "The version and state of the supervisor, and what it uses of this machine",
        .options = OPTIONS_CONNECT, .run = verb_info,
    },
    {
        .name = "help", .operands = "[VERB]", .operands_max = 1,
        .summary = "Lists the verbs, or explains one",
        .options = 0, .run = verb_help,
    },
    {
        .name = "complete", .operands = "WORD...", .operands_max = ANY_NUMBER, .hidden = true,
        .summary = "What a shell offers for the last of these words",
        .options = OPTIONS_CONNECT, .run = verb_complete,
    },
};
/* clang-format on */

const size_t n_verbs = ELEMENTS(verb_table);

const struct verb *verb_find(const char *name)
{
    const char *names[ELEMENTS(verb_table) + 1] = {NULL};
    size_t n = 0;

    for (size_t i = 0; i < n_verbs; i++) {
        if (strcmp(verb_table[i].name, name) == 0)
            return &verb_table[i];
        if (!verb_table[i].hidden)
            names[n++] = verb_table[i].name;
    }
    complain_unknown(suggest_nearest(name, names), "; 'troupectl help' lists them",
                     "unknown verb '%s'", name);
    return NULL;
}

int verb_parse(struct invocation *invocation, struct arguments *arguments, const char **operands)
{
    unsigned sets = OPTIONS_COMMON; /* those of a verb are known behind it only */
    const char *operand;
    int r;

    invocation->operands = operands;
    while ((r = options_next(&invocation->options, sets, arguments, &operand)) > 0) {
        if (invocation->verb) {
            operands[invocation->n_operands++] = operand;
            continue;
        }
        invocation->verb = verb_find(operand);
        if (!invocation->verb)
            return EXIT_USAGE;
        sets |= invocation->verb->options;
    }
    return r < 0 ? EXIT_USAGE : EXIT_OK;
}

/* ---- help ---- */

/* Prints the help: all verbs, or one with its options. */

/* Width of the left column; wider entries get a line of their own. */
#define LEFT_WIDTH 22

static void help_all(void)
{
    puts("Usage: troupectl [VERB] [OPERAND...] [OPTION...]\n"
         "Inspects and controls a running trouped.\n");
    for (size_t i = 0; i < n_verbs; i++) {
        char left[64];

        if (verb_table[i].hidden)
            continue;
        snprintf(left, sizeof(left), "%s %s", verb_table[i].name, verb_table[i].operands);
        if (strlen(left) > LEFT_WIDTH)
            printf("  %s\n  %*s %s\n", left, LEFT_WIDTH, "", verb_table[i].summary);
        else
            printf("  %-*s %s\n", LEFT_WIDTH, left, verb_table[i].summary);
    }
    puts("\nOptions of every verb:");
    options_help(OPTIONS_COMMON);
    puts("\n'troupectl help VERB' explains a verb; see also troupectl(1). A TARGET is a\n"
         "group (digest), a cell (mail/acme) or a worker (digest/3, mail/acme/0). Exit\n"
         "status: 0 ok, 1 failed, 2 usage, 3 no supervisor, 4 not permitted, 5 not found,\n"
         "6 busy or exists, 7 configuration invalid, 8 timed out, 9 unknown after a restart.");
}

static void help_verb(const struct verb *verb)
{
    printf("Usage: troupectl %s%s%s [OPTION...]\n%s.\n", verb->name, *verb->operands ? " " : "",
           verb->operands, verb->summary);
    if (verb->options != 0) {
        puts("\nOptions:");
        options_help(verb->options);
    }
    puts("\nOptions of every verb:");
    options_help(OPTIONS_COMMON);
    puts("\ntroupectl(1) tells more.");
}

void verb_print_help(const struct verb *verb)
{
    if (verb)
        help_verb(verb);
    else
        help_all();
}

int verb_help(struct invocation *invocation)
{
    const char *name = invocation_operand(invocation, 0);
    const struct verb *verb = name ? verb_find(name) : NULL;

    if (name && !verb)
        return EXIT_USAGE;
    verb_print_help(verb);
    return EXIT_OK;
}
