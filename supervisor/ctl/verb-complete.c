/* SPDX-License-Identifier: MIT */
/* The verb complete: what a shell offers for the last word of a command line. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/pattern.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/verb.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <string.h>

/* How long a user who presses the tab key waits for a reply. */
#define PATIENCE (500 * USEC_PER_MSEC)
/* A user would not read more. */
#define CANDIDATES_MAX 1000
/* Of longer lists, only the beginning is searched. */
#define ITEMS_MAX 10000

#define WORD_MAX 768

/* A command line up to the word that is completed. */
struct line {
    struct invocation invocation; /* without that word */
    uint64_t sets;                /* of options */
    char before[64];              /* begins the word, and is not compared: "--state=" */
    const char *typed;            /* how the rest begins so far */
    size_t n;                     /* candidates so far */
};

/* ---- candidates: each is a line: the whole word, a tab, and a description, which may be empty
 * ---- */

static bool is_printable(const char *word)
{
    for (; *word != '\0'; word++)
        if ((unsigned char)*word < ' ' || *word == 0x7f)
            return false;
    return true;
}

/* Prints `word` if it begins as typed. Leaves out what has control characters. */
static void add(struct line *line, const char *word, const char *about)
{
    if (line->n >= CANDIDATES_MAX || *word == '\0' || !is_printable(word) ||
        strncmp(word, line->typed, strlen(line->typed)) != 0)
        return;
    line->n++;
    printf("%s%s\t%s\n", line->before, word, about);
}

/* Adds each of the words, which are separated by spaces. */
static void add_words(struct line *line, const char *words)
{
    char copy[WORD_MAX], *rest = copy;

    (void)snprintf(copy, sizeof(copy), "%s", words);
    for (const char *word; (word = strsep(&rest, " "));)
        add(line, word, "");
}

/* ---- names of what exists ---- */

enum live_targets {
    LIVE_GROUPS = 1 << 0,
    LIVE_CELLS = 1 << 1,
    LIVE_WORKERS = 1 << 2,
};

/* A list of which each item is offered. */
struct live_list {
    const char *method, *array;
    const char *name;       /* the pattern that is offered */
    const char *about;      /* the member that describes it */
    const char *parameters; /* of the call, as JSON */
};

static void add_items(struct line *line, const json_t *items, const char *name, const char *about)
{
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        _cleanup_free_ char *word = pattern_text(name, item, 0);

        add(line, word ? word : "", field_text(item, about));
    }
}

static void add_group(struct line *line, const json_t *group, unsigned which)
{
    const json_t *cells = json_object_get(group, "cells");
    char pattern[WORD_MAX];

    (void)snprintf(pattern, sizeof(pattern), "%s/{key}", field_text(group, "name"));
    if (which & LIVE_GROUPS)
        add(line, field_text(group, "name"), field_text(group, "description"));
    if (which & LIVE_WORKERS)
        add_items(line, json_object_get(group, "workers"), "{name}", "");
    if (which & LIVE_CELLS)
        add_items(line, cells, pattern, "");
    for (size_t i = 0; (which & LIVE_WORKERS) && i < json_array_size(cells); i++)
        add_items(line, json_object_get(json_array_get(cells, i), "workers"), "{name}", "");
}

/* Behind a slash, offers only cells and workers of the group before it. */
static void offer_targets(struct line *line, unsigned which)
{
    const char *slash = strchr(line->typed, '/');
    json_auto_t *status = NULL;
    const json_t *groups;
    char group[WORD_MAX];

    (void)snprintf(group, sizeof(group), "%.*s", slash ? (int)(slash - line->typed) : 0,
                   line->typed);
    (void)parts_of_status(&line->invocation, slash ? group : NULL, which == LIVE_GROUPS, &status);
    groups = json_object_get(status, "groups");
    for (size_t i = 0; i < json_array_size(groups); i++)
        add_group(line, json_array_get(groups, i), which);
}

static void offer_list(struct line *line, const struct live_list *list)
{
    json_auto_t *reply = NULL;

    (void)pages_collect(&line->invocation, list->method, json_loads(list->parameters, 0, NULL),
                        list->array, ITEMS_MAX, &reply);
    add_items(line, json_object_get(reply, list->array), list->name, list->about);
}

/* ---- what stands for what in usage lines ---- */

static const struct live_list JOBS = {CALL_JOBS "List", "jobs", "{id}", "state",
                                      "{\"ended\": true}"},
                              LIVE_JOBS = {CALL_JOBS "List", "jobs", "{id}", "state", "{}"},
                              SCHEDULES = {CALL_SCHEDULES "List", "schedules", "{name}",
                                           "description", "{}"},
                              TIMERS = {CALL_ACTORS "ListTimers", "timers", "{id}", "to", "{}"},
                              LETTERS = {CALL_ACTORS "ListDeadLetters", "letters", "{id}",
                                         "recipient", "{}"},
                              ACTORS = {CALL_ACTORS "ListActors", "actors", "{name}", "kind", "{}"},
                              EXCHANGES = {CALL_ACTORS "ListActors", "actors", "{name}", "kind",
                                           "{\"kind\": \"exchange\"}"};

static void offer_verbs(struct line *line)
{
    for (size_t i = 0; i < n_verbs; i++)
        if (*verb_table[i].summary)
            add(line, verb_table[i].name, verb_table[i].summary);
}

/* A line that begins with a tab: names of files. */
static void offer_files(struct line *line)
{
    puts("\tfiles");
}

static const struct meaning {
    const char *word;  /* in a usage line, or what an option takes */
    const char *where; /* the verb, or the option as "--kind", that it is for; NULL = all */
    /* One of these: */
    unsigned targets; /* enum live_targets */
    const struct live_list *list;
    const char *words; /* separated by spaces */
    void (*offer)(struct line *line);
} meanings[] = {
    {"TARGET", .targets = LIVE_GROUPS | LIVE_CELLS | LIVE_WORKERS},
    {"GROUP/CELL", .targets = LIVE_GROUPS | LIVE_CELLS},
    {"GROUP", .targets = LIVE_GROUPS},
    {"ID", "--id", .words = ""},
    {"ID", "timer", .list = &TIMERS},
    {"ID", "dead-letters", .list = &LETTERS},
    {"ID", "retry", .list = &LETTERS},
    {"ID", "purge", .list = &LETTERS},
    {"ID", "cancel", .list = &LIVE_JOBS},
    {"ID", "move", .list = &LIVE_JOBS},
    {"ID", "set", .list = &LIVE_JOBS},
    {"ID", "run-now", .list = &LIVE_JOBS},
    {"ID", .list = &JOBS},
    {"JOB", .list = &JOBS},
    {"ACTOR", .list = &ACTORS},
    {"ADDRESS", .list = &ACTORS},
    {"EXCHANGE", .list = &EXCHANGES},
    {"SCHEDULE", .list = &SCHEDULES},
    {"NAME", "exchanges", .list = &EXCHANGES},
    {"FILE", .offer = offer_files},
    {"DIR", .offer = offer_files},
    {"PATH", .offer = offer_files},
    {"VERB", .offer = offer_verbs},
    {"KIND", "--kind", .words = "slot pool group exchange client"},
    {"KIND", "exchanges", .words = "single typed-single typed-multi routing-key pattern"},
    {"STATE", .words = "queued running backoff delayed succeeded rejected cancelled dead pending"},
    {"END", .words = "success failure end"},
    {"REASON", .words = "unhandled no-match gone mailbox-full dropped late-reply wrong-reply "
                        "unknown-death loop no-memory job error crash"},
    {"WHAT", "--messages", .words = "enqueued dispatched unhandled all none"},
    {"CAUSE", .words = "retry exit signal oom job-timeout watchdog start-timeout violation "
                       "no-progress stop supervisor system-call result-too-large"},
};

/* `option` is NULL for an operand. */
static bool means(const struct meaning *meaning, const struct line *line, const char *word,
                  const struct option *option)
{
    if (strcmp(meaning->word, word) != 0)
        return false;
    if (!meaning->where)
        return true;
    if (strncmp(meaning->where, "--", 2) == 0)
        return option && strcmp(meaning->where + 2, option->name) == 0;
    return !option && strcmp(meaning->where, line->invocation.verb->name) == 0;
}

static void offer(struct line *line, const char *word, const struct option *option)
{
    const struct meaning *meaning = meanings, *end = meanings + ELEMENTS(meanings);

    while (meaning < end && !means(meaning, line, word, option))
        meaning++;
    if (meaning == end) {
        /* Not a name for something: the operand itself. */
        if (!option && *word >= 'a' && *word <= 'z')
            add(line, word, "");
    } else if (meaning->targets) {
        offer_targets(line, meaning->targets);
    } else if (meaning->list) {
        offer_list(line, meaning->list);
    } else if (meaning->words) {
        add_words(line, meaning->words);
    } else {
        meaning->offer(line);
    }
}

/* Finds what stands at an operand's place in the verb's usage line, without brackets and dots:
 * "TARGET", "list|show", "GROUP/CELL". Returns false if there is no such place. */
static bool usage_at(const struct line *line, char ret[WORD_MAX])
{
    const char *usage = line->invocation.verb->operands, *other = strstr(usage, " | --all ");
    size_t size, n = 0;

    if (other && line->invocation.options.everything)
        usage = other + strlen(" | --all ");
    size = strcspn(usage, " ");
    for (size_t place = line->invocation.n_operands; place > 0 && !memmem(usage, size, "...", 3);
         place--) {
        usage += size + strspn(usage + size, " ");
        if (*usage == '\0' || *usage == '|')
            return false;
        size = strcspn(usage, " ");
    }
    for (size_t i = 0; i < size && n + 1 < WORD_MAX; i++)
        if (!strchr("[].", usage[i]))
            ret[n++] = usage[i];
    ret[n] = '\0';
    return true;
}

static void offer_operand(struct line *line)
{
    char words[WORD_MAX], *rest = words;

    if (!line->invocation.verb)
        offer_verbs(line);
    else if (usage_at(line, words))
        for (const char *word; (word = strsep(&rest, "|"));)
            offer(line, word, NULL);
}

static void offer_option(struct line *line)
{
    const char *equals = strchr(line->typed, '=');
    const struct option *option;
    char word[64];

    for (size_t i = 0; !equals && i < n_options; i++)
        if (option_table[i].set & line->sets) {
            (void)snprintf(word, sizeof(word), "--%s", option_table[i].name);
            add(line, word, option_table[i].help);
        }
    option = equals ? option_find(line->sets, line->typed + 2, (size_t)(equals - line->typed - 2))
                    : NULL;
    if (!option || !option->argument)
        return;
    (void)snprintf(line->before, sizeof(line->before), "--%s=", option->name);
    line->typed = equals + 1;
    offer(line, option->argument, option);
}

int verb_complete(struct invocation *invocation)
{
    const size_t n = invocation->n_operands > 0 ? invocation->n_operands - 1 : 0;
    const usec_t timeout = invocation->options.timeout;
    struct line line = {
        .invocation = {.options = invocation->options, .client = VARLINK_CLIENT_NULL},
        .typed = n < invocation->n_operands ? invocation->operands[n] : ""};
    struct arguments arguments = {.items = invocation->operands, .n_items = n};
    _cleanup_free_ const char **operands = calloc(n + 1, sizeof(*operands));

    /* Errors of a command line that is not complete are not reported. */
    if (!operands || !freopen("/dev/null", "we", stderr) ||
        (verb_parse(&line.invocation, &arguments, operands) != EXIT_OK && !arguments.awaits))
        return EXIT_OK;
    line.invocation.options.timeout = timeout > 0 ? timeout : PATIENCE;
    line.sets = OPTIONS_COMMON | (line.invocation.verb ? line.invocation.verb->options : 0);
    if (arguments.awaits)
        offer(&line, arguments.awaits->argument, arguments.awaits);
    else if (!arguments.operands_only && line.typed[0] == '-')
        offer_option(&line);
    else
        offer_operand(&line);
    varlink_client_deinit(&line.invocation.client);
    return EXIT_OK;
}
