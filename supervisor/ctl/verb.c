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
        .details =
            "Without TARGET: the supervisor and a table of all groups; with --all everything\n"
            "about each. With TARGET everything about it; healthy workers of large groups are\n"
            "folded into one line. With TARGET the exit status is 0 when all of\n"
            "them are up (groups running or paused, workers idle or busy), 1 when one is\n"
            "not, 5 when one does not exist. 'troupe-nats cluster' shows all machines.\n",
        .options = OPTIONS_CONNECT | OPTIONS_ALL, .run = verb_status,
    },
    {
        .name = "events", .operands = "[TARGET]", .operands_max = 1,
        .summary = "Past events; with --follow also new ones",
        .details =
            "With --follow, continues after a restart of the supervisor; events in between are\n"
            "shown as far as they are kept.\n",
        .options = OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_EVENTS | OPTIONS_RECONNECT,
        .run = verb_events,
    },
    {
        .name = "jobs", .operands = "[GROUP[/CELL]]", .operands_max = 1,
        .summary = "Live jobs; with --ended also those whose results are kept",
        .details =
            "Shows 1,000 jobs, or as many as --limit says.\n",
        .options = OPTIONS_CONNECT | OPTIONS_ENDED | OPTIONS_STATE | OPTIONS_LIMIT,
        .run = verb_jobs,
    },
    {
        .name = "job", .operands = "ID", .operands_min = 1, .operands_max = 1,
        .summary = "One job; with --follow until its end",
        .details =
            "The exit status is 1 if the job has ended without success.\n",
        .options = OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_RECONNECT, .run = verb_job,
    },
    {
        .name = "why", .operands = "TARGET|JOB...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "What a group, cell, worker or job waits for, in a sentence",
        .details =
            "A line for each reason; the first one decides. A name that is both a group's and a\n"
            "job's is the group's.\n",
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
        .details =
            "Only a result goes to standard output. If the job does not succeed, the reason\n"
            "goes to standard error and the exit status is 1.\n"
            "Ctrl-C cancels the job; a second Ctrl-C exits without waiting for its end.\n",
        .options = OPTIONS_PAYLOAD | OPTIONS_ID | OPTIONS_JOB | OPTIONS_RECONNECT,
        .run = verb_do,
    },
    {
        .name = "wait", .operands = "ID", .operands_min = 1, .operands_max = 1,
        .summary = "Waits for the end of a job and writes its result",
        .details =
            "As 'do' does, for a job that exists: ID is what 'create' has printed. --timeout\n"
            "limits the wait (default: none); then the exit status is 8, and the job continues.\n",
        .options = OPTIONS_PATIENCE | OPTIONS_RECONNECT, .run = verb_wait,
    },
    {
        .name = "map", .operands = "GROUP", .operands_min = 1, .operands_max = 1,
        .summary = "Submits a job per line of input, writes results in the same order",
        .details =
            "Writes a line for every job that was submitted: its result, with \\n in place of\n"
            "newlines within it, or nothing if there is none. With --null or --json, results\n"
            "are unchanged. If a job does not succeed, the reason goes to standard error; the\n"
            "exit status is 0 only if all succeed. Only a window of lines is kept in memory;\n"
            "while the queue of the group is full, map waits. After Ctrl-C, map submits no more\n"
            "and waits for running jobs; a second Ctrl-C exits.\n",
        .options = OPTIONS_JOB | OPTIONS_MAP | OPTIONS_RECONNECT, .run = verb_map,
    },
    {
        .name = "tell", .operands = "ACTOR TYPE [-]", .operands_min = 2, .operands_max = 3,
        .summary = "Sends a message to an actor, without waiting for a reply",
        .details =
            "ACTOR is a group, a worker (GROUP/0), an exchange, or a name that an actor\n"
            "registered. TYPE is a dotted name, or \"\".\n",
        .options = OPTIONS_CONNECT | OPTIONS_PAYLOAD | OPTIONS_KEY, .run = verb_tell,
    },
    {
        .name = "ask", .operands = "ACTOR TYPE [-]", .operands_min = 2, .operands_max = 3,
        .summary = "Sends a message to an actor and writes its reply",
        .details =
            "The exit status is 8 if no reply came in time, 1 if none will come.\n",
        .options = OPTIONS_REPLY | OPTIONS_PAYLOAD | OPTIONS_KEY, .run = verb_ask,
    },
    {
        .name = "schedule", .operands = "ACTOR TYPE [-]", .operands_min = 2, .operands_max = 3,
        .summary = "Sends a message later and prints the id of the timer",
        .details =
            "--delay or --at give the first time, --every the interval; with --every alone, the\n"
            "first message is sent after one interval. An interval is a fixed length: 1d is 24\n"
            "hours, also when daylight saving time begins or ends.\n"
            "Groups of troupe-exec take jobs only: 'troupectl create GROUP --at TIME'.\n",
        .options = OPTIONS_CONNECT | OPTIONS_PAYLOAD | OPTIONS_KEY | OPTIONS_WHEN,
        .run = verb_schedule,
    },
    {
        .name = "unschedule", .operands = "[ID...]", .operands_max = ANY_NUMBER,
        .summary = "Cancels timers",
        .details =
            "Give ids, or --to ACTOR and --type TYPE for all timers of this type and actor.\n",
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
        .details =
            "KIND is single, typed-single, typed-multi or routing-key; see\n"
            "troupe.exchange(5).\n",
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
        .details =
            "Takes ids of dead letters or jobs, filters, or --all. Sends a message to its recipient\n"
            "again, and submits a dead job as a new job. A message or job that cannot be sent stays.\n"
            "--dry-run counts the matches and prints an id; --up-to with that id leaves out later\n"
            "dead letters.\n",
        .options = OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_CHANGE, .run = verb_retry,
    },
    {
        .name = "purge", .operands = "[ID...]", .operands_max = ANY_NUMBER,
        .summary = "Removes dead jobs and dead letters",
        .details =
            "Takes ids, filters, or --all, like retry.\n",
        .options = OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_CHANGE, .run = verb_retry,
    },
    {
        .name = "cancel", .operands = "ID... | --all GROUP[/CELL]...", .operands_min = 1,
        .operands_max = ANY_NUMBER,
        .summary = "Cancels jobs, which are not retried",
        .details =
            "With --all, cancels every job of a group or cell that has not ended: first those\n"
            "that wait, then those that are running.\n",
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
        .details =
            "Waits for these jobs however long they take, unless --within is given;\n"
            "'troupectl cancel ID' ends a single job.\n",
        .options = OPTIONS_CONNECT | OPTIONS_WAIT | OPTIONS_WITHIN, .run = verb_change,
    },
    {
        .name = "restart", .operands = "TARGET...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Restarts groups, cells or workers after their current jobs",
        .details =
            "Waits for these jobs however long they take; 'troupectl cancel ID' ends one that\n"
            "is stuck.\n",
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
        .details =
            "Without GROUP: all groups that drain or are drained. Those that are only paused\n"
            "stay so.\n",
        .options = OPTIONS_CONNECT | OPTIONS_ACTOR, .run = verb_resume,
    },
    {
        .name = "drain", .operands = "[GROUP...]", .operands_max = ANY_NUMBER,
        .summary = "Takes no new jobs, and waits until none runs: for maintenance",
        .details =
            "Without GROUP: all groups. Jobs that are queued or running are worked off; those\n"
            "that wait for another attempt or for their time, or in a paused or stopped cell,\n"
            "wait on, until 'troupectl resume'. --timeout limits how long the command waits\n"
            "(default: for ever); then it says what holds it up, the exit status is 8, and the\n"
            "groups continue to drain.\n",
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
        .details =
            "With SystemCallLog=~@default in its [Sandbox], the system calls that its workers\n"
            "make are recorded, also those that SystemCallFilter= forbids.\n",
        .options = OPTIONS_CONNECT, .run = verb_sandbox,
    },
    {
        .name = "logs", .operands = "TARGET|JOB", .operands_min = 1, .operands_max = 1,
        .summary = "What workers or one job wrote; or switches the message log",
        .details =
            "What a job wrote is kept after its end and the end of its worker. A name that is\n"
            "both a group's and a job's is the group's.\n",
        .options = OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_MESSAGES | OPTIONS_RECONNECT,
        .run = verb_logs,
    },
    {
        .name = "top", .operands = "[TARGET]", .operands_max = 1,
        .summary = "Groups as they work, on the whole screen, until Ctrl-C",
        .details =
            "With TARGET or --all also cells and workers. Those in trouble come first. Without a\n"
            "terminal, prints a block of lines a second.\n",
        .options = OPTIONS_CONNECT | OPTIONS_ALL | OPTIONS_TOP | OPTIONS_RECONNECT,
        .run = verb_top,
    },
    {
        .name = "metrics", .operands = "",
        .summary = "Numbers for Prometheus and other monitoring systems",
        .details =
            "In the text format that Prometheus, promtool and the textfile collector of\n"
            "node_exporter read. troupe-metrics(7) lists the names.\n",
        .options = OPTIONS_CONNECT | OPTIONS_METRICS, .run = verb_metrics,
    },
    {
        .name = "init", .operands = "python NAME", .operands_min = 2, .operands_max = 2,
        .summary = "Writes a group file and a program to begin with",
        .details =
            "NAME.py and NAME.group in the current directory; files that exist are not changed.\n",
        .run = verb_init,
    },
    {
        .name = "verify", .operands = "[FILE...]", .operands_max = ANY_NUMBER,
        .summary = "Checks the configuration",
        .details =
            "Prints a line for every problem, FILE:LINE: TEXT; the exit status is 7 if there is\n"
            "one.\n",
        .options = OPTIONS_CONFIG, .run = verb_verify,
    },
    {
        .name = "reload", .operands = "",
        .summary = "Reads the configuration again",
        .details =
            "If a file has a problem, nothing changes, all problems are printed, and the exit\n"
            "status is 7.\n"
            "A program, user or file that is missing on this machine is printed and keeps only\n"
            "its own group from starting: all else is in force, and the exit status is 0.\n",
        .options = OPTIONS_CONNECT | OPTIONS_RELOAD, .run = verb_reload,
    },
    {
        .name = "upgrade", .operands = "",
        .summary = "Replaces the supervisor by the program that is installed now",
        .details =
            "Workers and services keep running. If the new program does not start, the old one\n"
            "continues, and the exit status is 1.\n",
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
        .details =
            "A line for each word: the word, a tab, and what it is. A line that begins with a\n"
            "tab says that names of files are also offered.\n"
            "Names that exist now come from the supervisor, if it answers within half a second,\n"
            "or within --timeout.\n",
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

/* ---- help ---- */

/* Prints the help: all verbs, or one with its options. */

/* Width of the left column; wider entries get a line of their own. */
#define LEFT_WIDTH 22

void help_all(void)
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

void help_verb(const struct verb *verb)
{
    printf("Usage: troupectl %s%s%s [OPTION...]\n%s.\n", verb->name, *verb->operands ? " " : "",
           verb->operands, verb->summary);
    if (verb->details)
        printf("\n%s", verb->details);
    if (verb->options != 0) {
        puts("\nOptions:");
        options_help(verb->options);
    }
    puts("\nOptions of every verb:");
    options_help(OPTIONS_COMMON);
}

int verb_help(struct invocation *invocation)
{
    const char *name = invocation_operand(invocation, 0);
    const struct verb *verb = name ? verb_find(name) : NULL;

    if (name && !verb)
        return EXIT_USAGE;
    if (verb)
        help_verb(verb);
    else
        help_all();
    return EXIT_OK;
}
