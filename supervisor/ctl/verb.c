/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/verb.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/syntax/suggest.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct verb verb_table[] = {
    {"status", "[TARGET...]", verb_status,
     "The state of groups and workers, problems first (the default verb)",
     OPTIONS_CONNECT | OPTIONS_ALL},
    {"events", "[TARGET]", verb_events,
     "Past events; with --follow also new ones",
     OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_EVENTS | OPTIONS_RECONNECT},
    {"jobs", "[GROUP[/CELL]]", verb_jobs,
     "Live jobs; with --ended also those whose results are kept",
     OPTIONS_CONNECT | OPTIONS_ENDED | OPTIONS_STATE | OPTIONS_LIMIT},
    {"history", "[GROUP[/KEY]]", verb_history,
     "Ended jobs of groups with History=, newest first",
     OPTIONS_CONNECT | OPTIONS_HISTORY | OPTIONS_LIMIT},
    {"job", "ID", verb_job,
     "One job; with --follow until its end",
     OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_RECONNECT},
    {"why", "TARGET|JOB...", verb_why,
     "What a group, cell, worker or job waits for, in a sentence",
     OPTIONS_CONNECT},
    {"stack", "WORKER|JOB...", verb_stack,
     "Where a worker or a running job is, and was when it died last",
     OPTIONS_CONNECT},
    {"profile", "WORKER|JOB", verb_profile,
     "In which functions a worker or a running job spends its time",
     OPTIONS_CONNECT | OPTIONS_FOR | OPTIONS_PROFILE | OPTIONS_LIMIT},
    {"record", "FILE [TARGET]", verb_record,
     "Writes jobs, workers and deaths as a timeline, for Perfetto",
     OPTIONS_CONNECT | OPTIONS_FOR},
    {"create", "GROUP [-]", verb_create,
     "Submits a job and prints its id",
     OPTIONS_PAYLOAD | OPTIONS_ID | OPTIONS_JOB | OPTIONS_RECONNECT},
    {"do", "GROUP [-]", verb_do,
     "Submits a job, waits for its end and writes its result",
     OPTIONS_PAYLOAD | OPTIONS_ID | OPTIONS_JOB | OPTIONS_RECONNECT},
    {"wait", "ID", verb_wait,
     "Waits for the end of a job and writes its result",
     OPTIONS_PATIENCE | OPTIONS_RECONNECT},
    {"watch", "ID", verb_watch,
     "Writes what a job emits, until its end",
     OPTIONS_CONNECT | OPTIONS_RECONNECT},
    {"map", "GROUP", verb_map,
     "Submits a job per line of input, writes results in the same order",
     OPTIONS_JOB | OPTIONS_MAP | OPTIONS_RECONNECT},
    {"tree", "ID...", verb_tree,
     "Draws the jobs that a job waits for, with those that these wait for",
     OPTIONS_CONNECT},
    {"batch", "create|close GROUP|ID", verb_batch,
     "Opens a batch, a job that ends when its members have ended; closes it",
     OPTIONS_CONNECT | OPTIONS_ID | OPTIONS_KEY},
    {"tell", "ACTOR TYPE [-]", verb_tell,
     "Sends a message to an actor, without waiting for a reply",
     OPTIONS_CONNECT | OPTIONS_PAYLOAD | OPTIONS_KEY},
    {"ask", "ACTOR TYPE [-]", verb_ask,
     "Sends a message to an actor and writes its reply",
     OPTIONS_REPLY | OPTIONS_PAYLOAD | OPTIONS_KEY},
    {"timer", "[list|add|cancel ID...]", verb_timer,
     "Sends messages later: lists, adds and cancels timers",
     OPTIONS_CONNECT | OPTIONS_PAYLOAD | OPTIONS_KEY | OPTIONS_TIMER | OPTIONS_LIMIT},
    {"schedule", "[list | show|pause|resume|run NAME... | backfill NAME FROM TO | skip NAME SLOT]", verb_schedule,
     "Schedules, which create jobs: shows and changes them",
     OPTIONS_CONNECT | OPTIONS_LIMIT | OPTIONS_DRY_RUN},
    {"limit", "[NAME[/KEY] rate=|burst=|running=... | NAME[/KEY] reset]", verb_limit,
     "Limits of jobs: lists them with their levels, or changes one",
     OPTIONS_CONNECT},
    {"actors", "[ADDRESS]", verb_actors,
     "Actors, and how many messages wait for each",
     OPTIONS_CONNECT | OPTIONS_LIMIT | OPTIONS_KIND},
    {"exchanges", "[show|create|delete NAME [KIND]]", verb_exchanges,
     "Lists, shows, creates and deletes exchanges",
     OPTIONS_CONNECT},
    {"subscribe", "EXCHANGE ACTOR [TYPE]", verb_subscribe,
     "Subscribes an actor to an exchange",
     OPTIONS_CONNECT | OPTIONS_KEY},
    {"unsubscribe", "EXCHANGE ACTOR [TYPE]", verb_unsubscribe,
     "Ends a subscription of exactly that type and key",
     OPTIONS_CONNECT | OPTIONS_KEY},
    {"dead-letters", "[list|show ID...]", verb_dead_letters,
     "Messages and jobs that were not handled",
     OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_LIMIT},
    {"retry", "[ID...]", verb_retry,
     "Submits dead jobs, and sends dead letters, again",
     OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_CHANGE},
    {"purge", "[ID...]", verb_retry,
     "Removes dead jobs and dead letters",
     OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_CHANGE},
    {"cancel", "ID... | --all GROUP[/CELL]...", verb_change_jobs,
     "Cancels jobs, which are not retried",
     OPTIONS_CONNECT | OPTIONS_CANCEL},
    {"move", "GROUP ID... | --all GROUP GROUP[/CELL]...", verb_change_jobs,
     "Moves jobs that wait to a group, which is named first",
     OPTIONS_CONNECT | OPTIONS_CANCEL},
    {"set", "priority=|delay= ID... | --all priority=|delay= GROUP[/CELL]...", verb_change_jobs,
     "Sets the priority of jobs that wait, or puts them off",
     OPTIONS_CONNECT | OPTIONS_CANCEL},
    {"run-now", "ID... | --all GROUP[/CELL]...", verb_change_jobs,
     "Ends the delays of jobs, and the pauses between their attempts",
     OPTIONS_CONNECT | OPTIONS_CANCEL},
    {"resize", "GROUP[/CELL] N", verb_resize,
     "Changes the number of a group's or a cell's workers",
     OPTIONS_CONNECT | OPTIONS_WAIT},
    {"start", "TARGET...", verb_change,
     "Starts groups, cells or workers",
     OPTIONS_CONNECT | OPTIONS_WAIT},
    {"stop", "TARGET...", verb_change,
     "Stops groups, cells or workers after their current jobs",
     OPTIONS_CONNECT | OPTIONS_WAIT | OPTIONS_WITHIN},
    {"restart", "TARGET...", verb_change,
     "Restarts groups, cells or workers after their current jobs",
     OPTIONS_CONNECT | OPTIONS_WAIT},
    {"reset", "TARGET...", verb_change,
     "Starts failed workers immediately, and forgets earlier failures",
     OPTIONS_CONNECT},
    {"signal", "TARGET [SIGNAL]", verb_signal,
     "Sends workers a signal, or that of ReloadSignal=",
     OPTIONS_CONNECT},
    {"pause", "GROUP[/CELL]...", verb_switch,
     "Stops handing out jobs; new jobs are queued",
     OPTIONS_CONNECT | OPTIONS_ACTOR},
    {"resume", "[GROUP[/CELL]...]", verb_resume,
     "Hands out jobs again",
     OPTIONS_CONNECT | OPTIONS_ACTOR},
    {"drain", "[GROUP...]", verb_drain,
     "Takes no new jobs, and waits until none runs: for maintenance",
     OPTIONS_PATIENCE},
    {"deaths", "[TARGET]", verb_deaths,
     "Reports of how and why workers died, newest first",
     OPTIONS_CONNECT | OPTIONS_LIMIT | OPTIONS_PLACES},
    {"sandbox", "suggest GROUP", verb_sandbox,
     "Suggests keys that permit what was recorded",
     OPTIONS_CONNECT},
    {"logs", "TARGET|JOB", verb_logs,
     "What workers or one job wrote; or switches the message log",
     OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_MESSAGES | OPTIONS_RECONNECT},
    {"top", "[TARGET]", verb_top,
     "Groups as they work, on the whole screen, until Ctrl-C",
     OPTIONS_CONNECT | OPTIONS_ALL | OPTIONS_TOP | OPTIONS_RECONNECT},
    {"metrics", "", verb_metrics,
     "Metrics for Prometheus and other monitoring systems",
     OPTIONS_CONNECT | OPTIONS_METRICS},
    {"init", "[command|python|c|service|schedule NAME]", verb_init,
     "Writes files as a start, in the current directory",
     OPTIONS_DEMO},
    {"import", "FILE...", verb_import,
     "Translates files of supervisord, cron and systemd into groups and schedules",
     OPTIONS_IMPORT},
    {"backup", "DIRECTORY", verb_backup,
     "Copies the databases of jobs, also while the supervisor runs",
     OPTIONS_CONFIG},
    {"verify", "[FILE...]", verb_verify,
     "Checks the configuration",
     OPTIONS_CONFIG},
    {"reload", "", verb_reload,
     "Reads the configuration again",
     OPTIONS_CONNECT | OPTIONS_RELOAD},
    {"upgrade", "", verb_upgrade,
     "Replaces the supervisor by the program that is installed now",
     OPTIONS_CONNECT},
    {"info", "", verb_info,
     "The version and state of the supervisor, and what it uses of this machine",
     OPTIONS_CONNECT},
    {"help", "[VERB]", verb_help,
     "Lists the verbs, or explains one",
     0},
    {"complete", "[WORD...]", verb_complete,
     "", OPTIONS_CONNECT},
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
        if (*verb_table[i].summary)
            names[n++] = verb_table[i].name;
    }
    complain_unknown(suggest_nearest(name, names), "; 'troupectl help' lists them",
                     "unknown verb '%s'", name);
    return NULL;
}

int verb_parse(struct invocation *invocation, struct arguments *arguments, const char **operands)
{
    uint64_t sets = OPTIONS_COMMON; /* those of a verb are known behind it only */
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

        if (*verb_table[i].summary == '\0')
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
         "6 busy or exists, 7 configuration invalid, 8 timed out, 9 unknown after a restart,\n"
         "10 unique key taken, 11 imported with something left out.");
}

static void help_verb(const struct verb *verb)
{
    printf("Usage: troupectl %s%s%s [OPTION...]\n%s%s", verb->name, *verb->operands ? " " : "",
           verb->operands, verb->summary, *verb->summary ? ".\n" : "");
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
