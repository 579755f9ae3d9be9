/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/verb.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/syntax/suggest.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

#define ANY_NUMBER SIZE_MAX

/* clang-format off */
const struct verb verb_table[] = {
    {
        .name = "status", .operands = "[TARGET...]", .operands_max = ANY_NUMBER,
        .summary = "How groups and workers are, what is wrong first (also without a verb)",
        .details =
            "Without TARGET: the supervisor and every group. Healthy workers of large\n"
            "groups are folded into one line. With TARGET the exit status is 0 when all of\n"
            "them are up (groups running or paused, workers idle or busy), 1 when one is\n"
            "not, 5 when one does not exist.\n",
        .options = OPTIONS_CONNECT | OPTIONS_ALL, .run = verb_status,
        .examples = "  troupectl status\n"
                    "  troupectl status digest --all\n"
                    "  troupectl status digest/3 || page-somebody\n",
    },
    {
        .name = "events", .operands = "[TARGET]", .operands_max = 1,
        .summary = "What has happened, or with --follow what happens",
        .details =
            "With --follow a connection that is lost, as by a restart of the supervisor, is made\n"
            "again; what happened meanwhile is shown as far as it is kept.\n",
        .options = OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_REPLAY, .run = verb_events,
        .examples = "  troupectl events digest\n"
                    "  troupectl events --follow --json | jq .events[]\n",
    },
    {
        .name = "jobs", .operands = "[GROUP[/CELL]]", .operands_max = 1,
        .summary = "Live jobs, with --ended also kept ones",
        .details =
            "What is being worked on first, then what waits for its time, then what waits for\n"
            "a worker, in the order in which it will be begun, then what has ended.\n",
        .options = OPTIONS_CONNECT | OPTIONS_ENDED | OPTIONS_STATE | OPTIONS_LIMIT,
        .run = verb_jobs,
        .examples = "  troupectl jobs digest --ended --limit 20\n"
                    "  troupectl jobs --state backoff\n",
    },
    {
        .name = "job", .operands = "ID", .operands_min = 1, .operands_max = 1,
        .summary = "One job; with --follow until its end",
        .details =
            "The exit status is 1 when the job has ended otherwise than successfully.\n",
        .options = OPTIONS_CONNECT | OPTIONS_FOLLOW, .run = verb_job,
        .examples = "  troupectl job 5f0c6a... --follow\n"
                    "  troupectl job nightly --json | jq -r .job.result.data\n",
    },
    {
        .name = "create", .operands = "GROUP [-]", .operands_min = 1, .operands_max = 2,
        .summary = "Hands over a job, prints its id, does not wait",
        .options = OPTIONS_PAYLOAD | OPTIONS_ID | OPTIONS_JOB, .run = verb_create,
        .examples = "  troupectl create digest --data /etc/passwd --id nightly --retries 2\n"
                    "  gzip -dc big.gz | troupectl create count -\n",
    },
    {
        .name = "do", .operands = "GROUP [-]", .operands_min = 1, .operands_max = 2,
        .summary = "Has a job done and writes its result",
        .details =
            "Nothing but a result goes to standard output. Why a job did not succeed goes to\n"
            "standard error, and the exit status is 1.\n"
            "Ctrl-C cancels the job; a second one leaves without waiting for its end.\n",
        .options = OPTIONS_PAYLOAD | OPTIONS_ID | OPTIONS_JOB, .run = verb_do,
        .examples = "  troupectl do digest --data /etc/passwd\n"
                    "  troupectl do thumbnails --file photo.jpg > small.png\n",
    },
    {
        .name = "map", .operands = "GROUP", .operands_min = 1, .operands_max = 1,
        .summary = "A job per line of input, results in its order",
        .details =
            "A line of output for every job that was submitted: the result, \\n in place of\n"
            "newlines within it; empty when there is none. Exactly what came back: --null\n"
            "or --json. Why a job did not succeed goes to standard error; the exit status\n"
            "is 0 only if all succeeded. Memory stays within the window however long the\n"
            "input is; while the group's queue is full, map waits. Ctrl-C submits no more\n"
            "and waits for what runs; a second one leaves.\n",
        .options = OPTIONS_JOB | OPTIONS_MAP, .run = verb_map,
        .examples = "  find /usr/share/doc -type f | troupectl map digest > digests\n"
                    "  find . -type f -print0 | troupectl map digest --null --tag --keep-going\n",
    },
    {
        .name = "tell", .operands = "ACTOR TYPE [-]", .operands_min = 2, .operands_max = 3,
        .summary = "Sends an actor a message, does not wait",
        .details =
            "ACTOR is a group, a worker (GROUP/0), an exchange, or a name that an actor\n"
            "registered. TYPE is a dotted name; \"\" is the empty one.\n",
        .options = OPTIONS_CONNECT | OPTIONS_PAYLOAD | OPTIONS_KEY, .run = verb_tell,
        .examples = "  troupectl tell bank account.close --data 17\n"
                    "  troupectl tell events order.created --key eu.fr --file order.json\n",
    },
    {
        .name = "ask", .operands = "ACTOR TYPE [-]", .operands_min = 2, .operands_max = 3,
        .summary = "Sends an actor a message, writes its reply",
        .details = "The exit status is 8 when nobody replied in time, 1 when nobody will.\n",
        .options = OPTIONS_REPLY | OPTIONS_PAYLOAD | OPTIONS_KEY, .run = verb_ask,
        .examples = "  troupectl ask bank balance --data 17 --timeout 2s\n",
    },
    {
        .name = "schedule", .operands = "ACTOR TYPE [-]", .operands_min = 2, .operands_max = 3,
        .summary = "Has a message sent later, prints the timer's id",
        .details =
            "--delay or --at tell when, --every how often; --every alone begins after one SPAN.\n"
            "A SPAN is a fixed length: --every 1d is 24 hours, also when summer time begins or\n"
            "ends. For commands under troupe-exec, which take jobs only: create GROUP --at TIME.\n",
        .options = OPTIONS_CONNECT | OPTIONS_PAYLOAD | OPTIONS_KEY | OPTIONS_WHEN,
        .run = verb_schedule,
        .examples = "  troupectl schedule mail digest --at 18:00 --every 1d\n"
                    "  troupectl schedule cache flush --delay 30s\n",
    },
    {
        .name = "unschedule", .operands = "[ID...]", .operands_max = ANY_NUMBER,
        .summary = "Cancels timers",
        .details = "By their ids, or all of one type for one actor: --to ACTOR --type TYPE.\n",
        .options = OPTIONS_CONNECT | OPTIONS_OF, .run = verb_unschedule,
        .examples = "  troupectl unschedule 4294967297\n"
                    "  troupectl unschedule --to mail --type digest\n",
    },
    {
        .name = "timers", .operands = "[ACTOR]", .operands_max = 1,
        .summary = "Messages that are to be sent later",
        .options = OPTIONS_CONNECT | OPTIONS_LIMIT, .run = verb_timers,
        .examples = "  troupectl timers mail\n",
    },
    {
        .name = "actors", .operands = "[ADDRESS]", .operands_max = 1,
        .summary = "Whoever can be told something, and what waits for them",
        .options = OPTIONS_CONNECT | OPTIONS_LIMIT | OPTIONS_KIND, .run = verb_actors,
        .examples = "  troupectl actors bank\n"
                    "  troupectl actors --kind exchange\n",
    },
    {
        .name = "exchanges", .operands = "[show|create|delete NAME [KIND]]", .operands_max = 3,
        .summary = "Lists, shows with subscribers, makes, deletes exchanges",
        .details =
            "KIND is single, typed-single, typed-multi, routing-key or pattern: troupe.exchange(5).\n",
        .options = OPTIONS_CONNECT, .run = verb_exchanges,
        .examples = "  troupectl exchanges\n"
                    "  troupectl exchanges create events pattern\n"
                    "  troupectl exchanges show events\n",
    },
    {
        .name = "subscribe", .operands = "EXCHANGE ACTOR [TYPE]", .operands_min = 2,
        .operands_max = 3,
        .summary = "Subscribes an actor to an exchange",
        .options = OPTIONS_CONNECT | OPTIONS_KEY, .run = verb_subscribe,
        .examples = "  troupectl subscribe events audit order --key 'eu.#'\n",
    },
    {
        .name = "unsubscribe", .operands = "EXCHANGE ACTOR [TYPE]", .operands_min = 2,
        .operands_max = 3,
        .summary = "Ends a subscription of exactly that type and key",
        .options = OPTIONS_CONNECT | OPTIONS_KEY, .run = verb_unsubscribe,
        .examples = "  troupectl unsubscribe events audit order --key 'eu.#'\n",
    },
    {
        .name = "dead-letters", .operands = "[list|show|requeue|purge [ID...]]",
        .operands_max = ANY_NUMBER,
        .summary = "Messages and jobs that nobody handled",
        .details =
            "requeue and purge take ids, filters, or --all. What is requeued goes to its\n"
            "recipient again, a dead job as a new job; what cannot be sent stays.\n",
        .options = OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_LIMIT, .run = verb_dead_letters,
        .examples = "  troupectl dead-letters --reason job --since 1h\n"
                    "  troupectl dead-letters show 17\n"
                    "  troupectl dead-letters requeue --to stock --type order\n"
                    "  troupectl dead-letters purge --all\n",
    },
    {
        .name = "errors", .operands = "[list|show|requeue|purge [ID...]]",
        .operands_max = ANY_NUMBER,
        .summary = "Messages whose handler failed: the error queue",
        .details = "As dead-letters.\n",
        .options = OPTIONS_CONNECT | OPTIONS_LETTERS | OPTIONS_LIMIT, .run = verb_dead_letters,
        .examples = "  troupectl errors\n"
                    "  troupectl errors requeue 18 19\n",
    },
    {
        .name = "cancel", .operands = "ID... | --all GROUP[/CELL]...", .operands_min = 1,
        .operands_max = ANY_NUMBER,
        .summary = "Asks jobs to end; they are not retried",
        .details =
            "With --all every job of a group or a cell that has not ended: first what waits,\n"
            "then what is being worked on.\n",
        .options = OPTIONS_CONNECT | OPTIONS_CANCEL, .run = verb_cancel,
        .examples = "  troupectl cancel nightly\n"
                    "  troupectl cancel --all digest\n",
    },
    {
        .name = "resize", .operands = "GROUP[/CELL] N", .operands_min = 2, .operands_max = 2,
        .summary = "Changes the number of a group's or a cell's workers",
        .options = OPTIONS_CONNECT | OPTIONS_WAIT, .run = verb_resize,
        .examples = "  troupectl resize digest 8 --wait\n",
    },
    {
        .name = "start", .operands = "TARGET...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Starts groups, cells or workers",
        .options = OPTIONS_CONNECT | OPTIONS_WAIT, .run = verb_change,
        .examples = "  troupectl start digest --wait\n",
    },
    {
        .name = "stop", .operands = "TARGET...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Stops them after the jobs they have in hand",
        .details =
            "However long these take, without --within; 'troupectl cancel ID' ends one alone.\n",
        .options = OPTIONS_CONNECT | OPTIONS_WAIT | OPTIONS_WITHIN, .run = verb_change,
        .examples = "  troupectl stop digest/3\n"
                    "  troupectl stop digest --within 10s --wait\n",
    },
    {
        .name = "restart", .operands = "TARGET...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Restarts them after the jobs they have in hand",
        .details =
            "However long these take; 'troupectl cancel ID' ends one that is stuck.\n",
        .options = OPTIONS_CONNECT | OPTIONS_WAIT, .run = verb_change,
        .examples = "  troupectl restart digest --wait --timeout 1min\n",
    },
    {
        .name = "reset", .operands = "TARGET...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Forgets deaths, and starts what has failed",
        .options = OPTIONS_CONNECT, .run = verb_change,
        .examples = "  troupectl reset digest\n",
    },
    {
        .name = "pause", .operands = "GROUP[/CELL]...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Hands out no more jobs; they are queued",
        .options = OPTIONS_CONNECT | OPTIONS_ACTOR, .run = verb_switch,
        .examples = "  troupectl pause digest\n"
                    "  troupectl pause --actor events\n",
    },
    {
        .name = "resume", .operands = "GROUP[/CELL]...", .operands_min = 1, .operands_max = ANY_NUMBER,
        .summary = "Hands out jobs again",
        .options = OPTIONS_CONNECT | OPTIONS_ACTOR, .run = verb_switch,
        .examples = "  troupectl resume digest\n",
    },
    {
        .name = "deaths", .operands = "[TARGET]", .operands_max = 1,
        .summary = "How and why workers died: reports, newest first",
        .options = OPTIONS_CONNECT | OPTIONS_LIMIT, .run = verb_deaths,
        .examples = "  troupectl deaths digest/3 --limit 1\n",
    },
    {
        .name = "log", .operands = "TARGET", .operands_min = 1, .operands_max = 1,
        .summary = "What workers wrote to standard error last; switches the message log",
        .options = OPTIONS_CONNECT | OPTIONS_FOLLOW | OPTIONS_MESSAGES, .run = verb_log,
        .examples = "  troupectl log digest\n"
                    "  troupectl log digest/3 --follow\n"
                    "  troupectl log digest --messages unhandled,dispatched\n"
                    "  troupectl log digest --messages none\n",
    },
    {
        .name = "verify", .operands = "[FILE...]", .operands_max = ANY_NUMBER,
        .summary = "Finds all that is wrong with the configuration",
        .details =
            "A line for every problem, FILE:LINE: TEXT; exit status 7 if there is one.\n",
        .options = OPTIONS_CONFIG, .run = verb_verify,
        .examples = "  troupectl verify && troupectl reload\n"
                    "  troupectl verify ./digest.group\n",
    },
    {
        .name = "reload", .operands = "",
        .summary = "Has the configuration read again",
        .details =
            "Nothing changes when there is a problem in it; all are printed, exit status 7.\n"
            "A program, user or file that is missing on this machine keeps its own group from starting,\n"
            "and is printed; the configuration is in force then, and the exit status 0.\n",
        .options = OPTIONS_CONNECT | OPTIONS_RELOAD, .run = verb_reload,
        .examples = "  troupectl reload\n"
                    "  troupectl reload --partial\n",
    },
    {
        .name = "info", .operands = "",
        .summary = "What the supervisor is and what it found on this machine",
        .options = OPTIONS_CONNECT, .run = verb_info,
        .examples = "  troupectl info --json\n",
    },
    {
        .name = "help", .operands = "[VERB]", .operands_max = 1,
        .summary = "Lists the verbs, or tells more of one",
        .options = 0, .run = verb_help,
        .examples = "  troupectl help jobs\n",
    },
    {
        .name = "version", .operands = "",
        .summary = "The versions of this program and the supervisor",
        .options = 0, .run = verb_version,
        .examples = "  troupectl version\n",
    },
};
/* clang-format on */

const size_t n_verbs = ELEMENTS(verb_table);

const struct verb *verb_find(const char *name)
{
    const char *names[ELEMENTS(verb_table) + 1] = {NULL};

    for (size_t i = 0; i < n_verbs; i++) {
        if (strcmp(verb_table[i].name, name) == 0)
            return &verb_table[i];
        names[i] = verb_table[i].name;
    }
    complain_unknown(suggest_nearest(name, names), "; 'troupectl help' lists them",
                     "unknown verb '%s'", name);
    return NULL;
}
