/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/command/verb-options.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/config/syntax/suggest.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/text/value.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FLAG(set_, letter_, name_, field_, help_)                                                  \
    {                                                                                              \
        .set = (set_), .kind = OPTION_FLAG, .letter = (letter_), .name = (name_),                  \
        .offset = offsetof(struct options, field_), .help = (help_)                                \
    }
#define VALUE(set_, kind_, letter_, name_, argument_, field_, help_, ...)                          \
    {                                                                                              \
        .set = (set_), .kind = (kind_), .letter = (letter_), .name = (name_),                      \
        .argument = (argument_), .offset = offsetof(struct options, field_), .field = #field_,     \
        .help = (help_), __VA_ARGS__                                                               \
    }

/* Their texts go into JSON. */
#define IN_MESSAGES                                                                                \
    (OPTIONS_ID | OPTIONS_JOB | OPTIONS_KEY | OPTIONS_REPLY | OPTIONS_TIMER | OPTIONS_LETTERS |    \
     OPTIONS_KIND | OPTIONS_MESSAGES | OPTIONS_STATE | OPTIONS_CANCEL | OPTIONS_HISTORY)

const struct option option_table[] = {
    VALUE(OPTIONS_PAYLOAD, OPTION_TEXT, 'd', "data", "TEXT", data, "payload: this text", ),
    VALUE(OPTIONS_PAYLOAD, OPTION_TEXT, 'f', "file", "FILE", file,
          "payload: a file's content; \"-\": standard input", ),
    VALUE(OPTIONS_ID | OPTIONS_MAP, OPTION_TEXT, 0, "tag", "WORD", job.tags,
          "a word by which the history finds the job; several with blanks between", ),
    VALUE(OPTIONS_ID, OPTION_TEXT, 0, "id", "ID", job.id, "the job's id (default: a random one)", ),
    VALUE(OPTIONS_KEY, OPTION_TEXT, 'k', "key", "KEY", job.key, "routing key (default: none)", ),
    VALUE(OPTIONS_REPLY, OPTION_SPAN, 't', "timeout", "SPAN", ask_timeout,
          "how long the reply may take (default: 30s)", ),
    VALUE(OPTIONS_REPLY, OPTION_TEXT, 0, "reply-type", "TYPE", reply_type,
          "wait for a reply of this type or a subtype (default: any)", ),
    VALUE(OPTIONS_TIMER, OPTION_SPAN, 0, "delay", "SPAN", job.delay_usec, "send after this time", ),
    VALUE(OPTIONS_TIMER, OPTION_DATE, 0, "at", "TIME", job.at_usec,
          "send at this time: 18:00, \"2026-11-30 18:00\", @1795975200", ),
    VALUE(OPTIONS_TIMER, OPTION_SPAN, 0, "every", "SPAN", every,
          "send again after each such interval", ),
    VALUE(OPTIONS_TIMER | OPTIONS_LETTERS, OPTION_TEXT, 0, "to", "ACTOR", to,
          "those for this address or one below it", ),
    VALUE(OPTIONS_TIMER | OPTIONS_LETTERS, OPTION_TEXT, 0, "type", "TYPE", type,
          "those of this type (dead letters: or a subtype)", ),
    VALUE(OPTIONS_LETTERS, OPTION_TEXT, 0, "from", "ACTOR", from,
          "those from this address or one below it", ),
    VALUE(OPTIONS_LETTERS, OPTION_TEXT, 0, "reason", "REASON", reason,
          "those with this reason: unhandled, gone, job, error ...", ),
    VALUE(OPTIONS_LETTERS | OPTIONS_CANCEL, OPTION_SPAN, 0, "since", "SPAN", since,
          "those of the last SPAN", ),
    VALUE(OPTIONS_LETTERS | OPTIONS_CANCEL | OPTIONS_HISTORY, OPTION_TEXT, 'k', "key", "KEY",
          of_key, "those with this key", ),
    VALUE(OPTIONS_LETTERS | OPTIONS_CANCEL, OPTION_SPAN, 0, "older-than", "SPAN", older_than,
          "those from before the last SPAN", ),
    FLAG(OPTIONS_CHANGE | OPTIONS_CANCEL | OPTIONS_DRY_RUN, 0, "dry-run", dry_run,
         "change nothing, say how many it would be"),
    VALUE(OPTIONS_HISTORY, OPTION_TEXT, 0, "tag", "WORD", of_tag, "those with this tag", ),
    VALUE(OPTIONS_LETTERS | OPTIONS_CANCEL | OPTIONS_HISTORY, OPTION_TEXT, 0, "text", "TEXT", text,
          "those with this text in id or key, or if they have ended, in reason or payload; "
          "history: with these words", ),
    VALUE(OPTIONS_HISTORY, OPTION_MOMENT, 0, "since", "TIME", since_at,
          "those that have ended since: 2h, 18:00, 2026-11-30, \"2026-11-30 18:00\"", ),
    VALUE(OPTIONS_HISTORY, OPTION_MOMENT, 0, "until", "TIME", until_at,
          "those that ended until then", ),
    FLAG(OPTIONS_HISTORY, 0, "purge", purge, "remove all jobs of the group from the history"),
    VALUE(OPTIONS_LETTERS | OPTIONS_CANCEL | OPTIONS_HISTORY, OPTION_TEXT, 0, "cause", "CAUSE",
          cause, "those whose last attempt failed so: retry, exit, signal, oom ...", ),
    VALUE(OPTIONS_CHANGE, OPTION_TEXT, 0, "send-to", "ACTOR", send_to,
          "retry: send to this actor instead of the recipient", ),
    FLAG(OPTIONS_CHANGE, 'a', "all", everything, "all of them, without a filter"),
    VALUE(OPTIONS_KIND, OPTION_TEXT, 0, "kind", "KIND", kind,
          "those of this kind: slot, pool, group, exchange, client", ),
    FLAG(OPTIONS_PLACES, 0, "by-place", by_place,
         "count deaths of the same kind at the same place"),
    FLAG(OPTIONS_ACTOR, 0, "actor", actor, "messages of an actor or exchange instead of jobs"),
    VALUE(OPTIONS_MESSAGES, OPTION_TEXT, 0, "messages", "WHAT", messages,
          "switch the message log: enqueued, dispatched, unhandled (with commas), all, none", ),
    VALUE(OPTIONS_JOB, OPTION_TEXT, 'k', "key", "KEY", job.key,
          "routing key; in a group with Cells=by-key it picks the cell", ),
    VALUE(OPTIONS_JOB, OPTION_TEXT, 0, "unique", "KEY", job.unique,
          "no two live jobs of the group have this key (default: the group's Unique=)", ),
    VALUE(OPTIONS_JOB, OPTION_TEXT, 0, "on-conflict", "WHAT", on_conflict,
          "if a live job has that key: existing, reject, replace, requeue", ),
    VALUE(OPTIONS_JOB, OPTION_SPAN, 0, "debounce", "SPAN", job.debounce_usec,
          "replace a job with that key that waits, and begin after this time", ),
    VALUE(OPTIONS_JOB, OPTION_SPAN, 0, "within", "SPAN", job.debounce_max_usec,
          "with --debounce: but not later than this after the first of those", ),
    VALUE(OPTIONS_JOB, OPTION_TEXT, 0, "after", "ID,...", job.after,
          "do not begin before these jobs have ended", ),
    VALUE(OPTIONS_JOB, OPTION_TEXT, 0, "if", "END", condition,
          "with --after: success (default), failure, end; otherwise cancel the job", ),
    VALUE(OPTIONS_JOB, OPTION_TEXT, 0, "batch", "ID", job.batch, "become a member of this batch", ),
    VALUE(OPTIONS_JOB, OPTION_SPAN, 't', "timeout", "SPAN", job.timeout_usec,
          "how long one attempt may take (default: the group's)", ),
    VALUE(OPTIONS_JOB, OPTION_NUMBER, 'r', "retries", "N", job.max_retries,
          "attempts after the first (default: the group's)", .minimum = 0, .maximum = 1000000),
    VALUE(OPTIONS_JOB, OPTION_BACKOFF, 0, "backoff", "MIN..MAX", job.backoff_min_usec,
          "pause between attempts (default: the group's)", ),
    VALUE(OPTIONS_JOB, OPTION_NUMBER, 'p', "priority", "N", priority,
          "0 (first) to 63 (last) in its queue (default: 32)", .minimum = 0, .maximum = 63),
    VALUE(OPTIONS_JOB, OPTION_NUMBER, 0, "cost", "N", cost,
          "units of each limit of the group (default: 1)", .minimum = 1, .maximum = 255),
    VALUE(OPTIONS_JOB, OPTION_SPAN, 0, "delay", "SPAN", job.delay_usec,
          "do not begin before this time has passed", ),
    VALUE(OPTIONS_JOB, OPTION_DATE, 0, "at", "TIME", job.at_usec,
          "do not begin before [YYYY-MM-DD] HH:MM[:SS], or @SECONDS", ),
    VALUE(OPTIONS_JOB, OPTION_PATIENCE, 0, "wait", "[=SPAN]", job.wait_usec,
          "wait for room if the queue is full (default: do not wait)", ),
    VALUE(OPTIONS_JOB, OPTION_TEXT, 0, "traceparent", "00-...", job.traceparent,
          "the span of which the job is a child, as of W3C Trace Context (or $TRACEPARENT)", ),
    VALUE(OPTIONS_JOB, OPTION_SPAN, 0, "deadline", "SPAN", job.deadline_usec,
          "cancel the job if it has not ended after this time", ),
    FLAG(OPTIONS_MAP, '0', "null", null, "NUL instead of newline, in and out"),
    FLAG(OPTIONS_MAP, 0, "show-input", show_input,
         "put the input line and a tab before each result"),
    VALUE(OPTIONS_MAP, OPTION_TEXT, 0, "output-dir", "DIR", output_directory,
          "write each result to a file DIR/LINE, and the file's path to the output", ),
    FLAG(OPTIONS_MAP, 0, "background", background,
         "print the id of a batch of these jobs instead of results, and do not wait"),
    FLAG(OPTIONS_MAP, 0, "keep-going", keep_going, "continue after a job that did not succeed"),
    VALUE(OPTIONS_MAP, OPTION_NUMBER, 'w', "window", "N", window,
          "lines in memory at most (default: 256)", .minimum = 1, .maximum = 1 << 16),
    FLAG(OPTIONS_WAIT, 'w', "wait", wait, "return when the change is complete"),
    VALUE(OPTIONS_WITHIN, OPTION_SPAN, 0, "within", "SPAN", within,
          "then terminate busy workers; their jobs are queued again", ),
    FLAG(OPTIONS_WITHIN, 0, "keep", keep, "groups stay stopped when the supervisor starts again"),
    FLAG(OPTIONS_FOLLOW, 'f', "follow", follow, "keep running and show what is new"),
    FLAG(OPTIONS_EVENTS, 0, "jobs", jobs, "with --follow: show also events of every job"),
    FLAG(OPTIONS_ALL, 'a', "all", all, "show every worker and cell"),
    FLAG(OPTIONS_CANCEL, 'a', "all", everything, "all such jobs of these groups or cells"),
    VALUE(OPTIONS_STATE | OPTIONS_CANCEL | OPTIONS_HISTORY, OPTION_TEXT, 0, "state", "STATE", state,
          "those in this state: queued, running, backoff, delayed, succeeded ...", ),
    FLAG(OPTIONS_ENDED, 'e', "ended", ended, "show also ended jobs whose results are kept"),
    VALUE(OPTIONS_LIMIT, OPTION_NUMBER, 'n', "limit", "N", limit, "at most N of them", .minimum = 1,
          .maximum = INT32_MAX),
    FLAG(OPTIONS_RELOAD, 0, "allow-empty", allow_empty, "allow a configuration without any group"),
    FLAG(OPTIONS_DEMO, 0, "demo", demo,
         "run a demonstration with workers that crash, and its page"),
    VALUE(OPTIONS_TOP, OPTION_SPAN, 'd', "interval", "SPAN", interval,
          "time between two pictures (default: 1s)", ),
    VALUE(OPTIONS_TOP, OPTION_NUMBER, 'n', "count", "N", count, "end after N pictures",
          .minimum = 1, .maximum = INT32_MAX),
    VALUE(OPTIONS_FOR, OPTION_SPAN, 0, "for", "SPAN", duration, "how long (default: 10s)", ),
    VALUE(OPTIONS_PROFILE, OPTION_TEXT, 0, "folded", "FILE", folded,
          "write folded stacks, a line each, to this file", ),
    VALUE(OPTIONS_PROFILE, OPTION_TEXT, 0, "svg", "FILE", svg,
          "write a flame graph to this file", ),
    VALUE(OPTIONS_METRICS, OPTION_TEXT, 'o', "output", "FILE", output,
          "replace this file atomically instead of writing to standard output", ),
    VALUE(OPTIONS_IMPORT, OPTION_TEXT, 'o', "output", "DIR", output,
          "write the files into this new directory, not to standard output", ),
    VALUE(OPTIONS_IMPORT, OPTION_TEXT, 'u', "user", "USER", user,
          "the user of programs for which the input names none, as in a user's crontab", ),
    VALUE(OPTIONS_CONFIG, OPTION_TEXT, 0, "config", "DIR", config,
          "configuration directory (default: /etc/troupe)", ),
    VALUE(OPTIONS_CONNECT, OPTION_SPAN, 't', "timeout", "SPAN", timeout,
          "how long an answer may take (default: 30s)", ),
    VALUE(OPTIONS_PATIENCE, OPTION_SPAN, 't', "timeout", "SPAN", timeout,
          "how long to wait (default: for ever)", ),
    VALUE(OPTIONS_RECONNECT, OPTION_RECONNECT, 0, "reconnect", "SPAN", reconnect,
          "how long to wait for a supervisor that restarts; 0: not at all", ),
    FLAG(OPTIONS_COMMON, 'j', "json", json, "print the reply of the supervisor as JSON"),
    VALUE(OPTIONS_COMMON, OPTION_TEXT, 's', "socket", "PATH", socket,
          "the supervisor's socket (or $TROUPE_SOCKET)", ),
    FLAG(OPTIONS_COMMON, 'q', "quiet", quiet, "print results and errors only, no remarks"),
    FLAG(OPTIONS_COMMON, 'h', "help", help, "print this help"),
    FLAG(OPTIONS_COMMON, 'V', "version", version, "print the version of this program"),
};

const size_t n_options = ELEMENTS(option_table);

const struct option *option_find(uint64_t sets, const char *name, size_t length)
{
    for (const struct option *option = option_table; option < option_table + n_options; option++)
        if ((option->set & sets) && strlen(option->name) == length &&
            memcmp(option->name, name, length) == 0)
            return option;
    return NULL;
}

/* Whether the parameter, such as "delay_usec", is what the member "job.delay_usec" holds; or part
 * of what the option holds, as "backoff_max_usec" of --backoff. */
static bool is_of_parameter(const struct option *option, const char *parameter, size_t length,
                            bool part)
{
    const size_t n = strlen(option->name);
    const char *member = option->field ? strchr(option->field, '.') : NULL;

    if (part)
        return length > n && memcmp(parameter, option->name, n) == 0 && parameter[n] == '_';
    member = member ? member + 1 : option->field;
    return member && strlen(member) == length && memcmp(member, parameter, length) == 0;
}

const struct option *option_of_parameter(const char *parameter, size_t length)
{
    for (int part = 0; part <= 1; part++)
        for (const struct option *option = option_table; option < option_table + n_options;
             option++)
            if ((option->set & OPTIONS_JOB) && is_of_parameter(option, parameter, length, part))
                return option;
    return NULL;
}

static const struct option *find_letter(uint64_t sets, char letter)
{
    for (const struct option *option = option_table; option < option_table + n_options; option++)
        if ((option->set & sets) && option->letter == letter)
            return option;
    return NULL;
}

static int bad_value(const struct option *option, const char *value)
{
    static const char *const allowed[] = {
        [OPTION_TEXT] = "text in UTF-8",
        [OPTION_SPAN] = "a time span, such as 500ms, 10s, 1min 30s",
        [OPTION_BACKOFF] = "two time spans, the smaller one first, such as 100ms..30s",
        [OPTION_DATE] = "a time: 18:30, 2030-01-31 06:00:00, or @SECONDS since 1970",
        [OPTION_MOMENT] =
            "a span before now, such as 2h; or 18:30, 2030-01-31 06:00:00, @SECONDS since 1970",
        [OPTION_PATIENCE] = "a time span, such as 500ms, 10s, 1min 30s",
        [OPTION_RECONNECT] = "a time span, such as 10s, 0 or infinity",
    };

    if (option->kind == OPTION_NUMBER)
        complain("--%s=%s: allowed: %" PRId64 " to %" PRId64, option->name, value, option->minimum,
                 option->maximum);
    else
        complain("--%s=%s: allowed: %s", option->name, value, allowed[option->kind]);
    return -EINVAL;
}

/* A time of day is that of the last 24 hours. */
static int take_moment(const char *value, usec_t *ret)
{
    const usec_t now = clock_realtime();
    usec_t span;

    if (value_span(value, &span) < 0)
        return value_slot(value, usec_sub(now, 86400 * USEC_PER_SEC), ret);
    *ret = usec_sub(now, span);
    return 0;
}

/* `value` is NULL if the option has none. */
static int store(struct options *options, const struct option *option, const char *value)
{
    void *field = (char *)options + option->offset;
    struct troupe_job_options *job = &options->job;
    int r = 0;

    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        break;
    case OPTION_TEXT:
        if ((option->set & IN_MESSAGES) && !utf8_is_text(value, strlen(value)))
            r = -EINVAL;
        *(const char **)field = value;
        break;
    case OPTION_SPAN:
        r = value_span(value, field);
        if (r == 0 && *(usec_t *)field == 0)
            r = -EINVAL;
        break;
    case OPTION_NUMBER:
        r = value_number(value, option->minimum, option->maximum, field);
        break;
    case OPTION_BACKOFF:
        r = value_span_range(value, &job->backoff_min_usec, &job->backoff_max_usec);
        /* 0 means "not given" in the struct. */
        job->backoff_min_usec += r == 0 && job->backoff_min_usec == 0;
        job->backoff_max_usec += r == 0 && job->backoff_max_usec == 0;
        break;
    case OPTION_DATE:
        r = value_date(value, clock_realtime(), field);
        break;
    case OPTION_MOMENT:
        r = take_moment(value, field);
        break;
    case OPTION_RECONNECT:
        r = value_span(value, field);
        options->reconnect_given = true;
        break;
    case OPTION_PATIENCE:
        *(usec_t *)field = USEC_INFINITY;
        if (value)
            r = value_span(value, field);
        break;
    }
    return r < 0 ? bad_value(option, value) : 0;
}

static int unknown(uint64_t sets, const char *name, size_t length)
{
    const char *names[ELEMENTS(option_table) + 1] = {NULL}, *nearest;
    char given[SUGGEST_WORD_MAX], dashed[SUGGEST_WORD_MAX + 2] = "";
    size_t n = 0;

    for (size_t i = 0; i < n_options; i++)
        if (option_table[i].set & sets)
            names[n++] = option_table[i].name;
    snprintf(given, sizeof(given), "%.*s", (int)length, name);
    nearest = suggest_nearest(given, names);
    if (nearest)
        snprintf(dashed, sizeof(dashed), "--%s", nearest);
    complain_unknown(dashed, "; --help lists them", "unknown option '--%s'", given);
    return -EINVAL;
}

/* Stores an option; its value is `attached`, or if that is NULL, the next argument. */
static int take(struct options *options, struct arguments *arguments, const struct option *option,
                const char *attached)
{
    const char *value = attached;

    if (!option->argument && attached) {
        complain("option '--%s' takes no value", option->name);
        return -EINVAL;
    }
    if (option->argument && !attached && option->kind != OPTION_PATIENCE) {
        if (arguments->next >= arguments->n_items) {
            arguments->awaits = option;
            complain("option '--%s' needs a value: %s", option->name, option->argument);
            return -EINVAL;
        }
        value = arguments->items[arguments->next++];
    }
    return store(options, option, value);
}

/* "--name", "--name=value" or "--name value". */
static int take_long(struct options *options, uint64_t sets, struct arguments *arguments,
                     const char *name)
{
    const char *equals = strchrnul(name, '=');
    const struct option *option = option_find(sets, name, (size_t)(equals - name));

    if (!option)
        return unknown(sets, name, (size_t)(equals - name));
    return take(options, arguments, option, *equals == '=' ? equals + 1 : NULL);
}

/* "-a", "-abc", "-nVALUE" or "-n VALUE". */
static int take_short(struct options *options, uint64_t sets, struct arguments *arguments,
                      const char *letters)
{
    int r = 0;

    while (r == 0 && *letters != '\0') {
        const struct option *option = find_letter(sets, *letters++);
        const char *value = NULL;

        if (!option) {
            complain("unknown option '-%c'; --help lists them", letters[-1]);
            return -EINVAL;
        }
        if (option->argument && *letters != '\0') {
            value = letters;
            letters = "";
        }
        r = take(options, arguments, option, value);
    }
    return r;
}

int options_next(struct options *options, uint64_t sets, struct arguments *arguments,
                 const char **ret)
{
    while (arguments->next < arguments->n_items) {
        const char *item = arguments->items[arguments->next++];
        int r;

        if (arguments->operands_only || item[0] != '-' || item[1] == '\0') {
            *ret = item;
            return 1;
        }
        if (strcmp(item, "--") == 0) {
            arguments->operands_only = true;
            continue;
        }
        if (item[1] == '-')
            r = take_long(options, sets, arguments, item + 2);
        else
            r = take_short(options, sets, arguments, item + 1);
        if (r < 0)
            return r;
    }
    return 0;
}

void options_help(uint64_t sets)
{
    for (size_t i = 0; i < n_options; i++) {
        const struct option *option = &option_table[i];
        char left[64];

        if (!(option->set & sets))
            continue;
        snprintf(left, sizeof(left), "%s--%s%s%s",
                 option->letter ? (const char[]){'-', option->letter, ',', ' ', '\0'} : "    ",
                 option->name, option->argument && *option->argument != '[' ? " " : "",
                 option->argument ? option->argument : "");
        printf("  %-24s %s\n", left, option->help);
    }
}
