/* SPDX-License-Identifier: MIT */
/* The verb complete: what a shell offers for the last word of a command line. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/verb.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whoever presses the tab key waits for it. */
#define PATIENCE  (500 * USEC_PER_MSEC)
#define NAME_SIZE 768
/* A user would not read more. */
#define CANDIDATES_MAX 1000

/* ---- candidates: each is a line: the whole word, a tab, and a description, which may be empty
 * ---- */

struct candidates {
    const char *before; /* begins the word, and is not compared: "--state=" */
    const char *typed;  /* how the rest begins so far */
    size_t n;
};

static bool is_full(const struct candidates *candidates)
{
    return candidates->n >= CANDIDATES_MAX;
}

static bool is_printable(const char *word)
{
    for (; *word != '\0'; word++)
        if ((unsigned char)*word < ' ' || *word == 0x7f)
            return false;
    return true;
}

/* Prints `word` if it begins as typed. `about` may be NULL. Leaves out what has control characters.
 */
static void candidates_add(struct candidates *candidates, const char *word, const char *about)
{
    if (is_full(candidates) || *word == '\0' || !is_printable(word) ||
        strncmp(word, candidates->typed, strlen(candidates->typed)) != 0)
        return;
    candidates->n++;
    printf("%s%s\t%s\n", candidates->before, word, about ? about : "");
}

/* Like candidates_add(), but for each of the words, which are separated by spaces. */
static void candidates_add_words(struct candidates *candidates, const char *words)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        char word[64];

        snprintf(word, sizeof(word), "%.*s", (int)length, words);
        candidates_add(candidates, word, NULL);
        words += length;
        words += strspn(words, " ");
    }
}

/* ---- names of what exists: no errors are printed ---- */

enum live_targets {
    LIVE_GROUPS = 1 << 0,
    LIVE_CELLS = 1 << 1,
    LIVE_WORKERS = 1 << 2,
};

/* A list of which each item is offered. */
struct live_list {
    const char *method, *array;
    const char *name;       /* the member that is offered: text or a number */
    const char *about;      /* the member that describes it */
    const char *parameters; /* of the call, as JSON */
};

struct search {
    struct candidates *candidates;
    usec_t deadline;
    unsigned which;
};

/* How long the next reply may take. */
static void hurry(struct invocation *invocation, usec_t deadline)
{
    const usec_t now = clock_now();

    invocation->options.timeout = now < deadline ? deadline - now : 1;
    invocation->client.timeout = invocation->options.timeout;
}

static struct search begin(struct invocation *invocation, struct candidates *candidates)
{
    const usec_t patience = invocation->options.timeout;
    struct search search = {.candidates = candidates,
                            .deadline = clock_now() + (patience > 0 ? patience : PATIENCE)};

    invocation->lenient = true;
    invocation->waits = true;
    return search;
}

static void add_workers(struct search *search, const json_t *owner)
{
    const json_t *workers = json_object_get(owner, "workers");

    for (size_t i = 0; (search->which & LIVE_WORKERS) && i < json_array_size(workers); i++)
        candidates_add(search->candidates, field_text(json_array_get(workers, i), "name"), NULL);
}

static void add_cells(struct search *search, const json_t *group)
{
    const json_t *cells = json_object_get(group, "cells");

    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);
        char name[NAME_SIZE];

        snprintf(name, sizeof(name), "%s/%s", field_text(group, "name"), field_text(cell, "key"));
        if (search->which & LIVE_CELLS)
            candidates_add(search->candidates, name, NULL);
        add_workers(search, cell);
    }
}

static int add_groups(struct invocation *invocation, const json_t *reply, bool last, void *userdata)
{
    struct search *search = userdata;
    const json_t *groups = json_object_get(reply, "groups");

    (void)last;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);

        if (search->which & LIVE_GROUPS)
            candidates_add(search->candidates, field_text(group, "name"),
                           field_text(group, "description"));
        add_workers(search, group);
        add_cells(search, group);
    }
    hurry(invocation, search->deadline);
    return is_full(search->candidates) ? EXIT_FAILED : EXIT_OK;
}

static void live_targets(struct invocation *invocation, struct candidates *candidates,
                         unsigned which)
{
    struct search search = begin(invocation, candidates);
    const char *slash = strchr(candidates->typed, '/');
    char group[NAME_SIZE];

    search.which = which;
    hurry(invocation, search.deadline);
    /* Behind a slash only this group counts; an unknown one is not an error to speak of. */
    snprintf(group, sizeof(group), "%.*s", (int)(slash ? slash - candidates->typed : 0),
             candidates->typed);
    (void)call_more(invocation, CALL_SUPERVISOR "GetStatus",
                    json_pack("{s:s*}", "target", slash ? group : NULL), false, add_groups,
                    &search);
}

static void add_item(struct candidates *candidates, const struct live_list *list,
                     const json_t *item)
{
    const json_t *name = json_object_get(item, list->name);
    char number[32];

    snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(name));
    candidates_add(candidates, json_is_string(name) ? json_string_value(name) : number,
                   field_text(item, list->about));
}

/* Reads pages until there are enough or it has taken too long. */
static void live_list(struct invocation *invocation, struct candidates *candidates,
                      const struct live_list *list)
{
    const struct search search = begin(invocation, candidates);
    json_auto_t *parameters = json_loads(list->parameters, 0, NULL);
    bool more = parameters != NULL;

    while (more) {
        json_auto_t *reply = NULL;
        const json_t *items;

        hurry(invocation, search.deadline);
        if (call(invocation, list->method, json_deep_copy(parameters), false, &reply) != EXIT_OK)
            break;
        items = json_object_get(reply, list->array);
        for (size_t i = 0; i < json_array_size(items); i++)
            add_item(candidates, list, json_array_get(items, i));
        more = field_has(reply, "next") && !is_full(candidates) && clock_now() < search.deadline;
        json_object_set(parameters, "cursor", json_object_get(reply, "next"));
    }
}

/* ---- a command line up to the word that is completed ---- */

struct line {
    struct invocation *invocation;
    struct candidates candidates;
    const struct verb *verb; /* NULL = none yet */
    unsigned sets;           /* of options */
    size_t n_operands;       /* complete ones */
    bool operands_only;      /* "--" was seen */
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < n_verbs; i++)
        if (!verb_table[i].hidden && strcmp(verb_table[i].name, name) == 0)
            return &verb_table[i];
    return NULL;
}

static bool verb_is(const struct line *line, const char *name)
{
    return line->verb && strcmp(line->verb->name, name) == 0;
}

/* ---- what stands for what in usage lines ---- */

static const struct live_list JOBS = {CALL_JOBS "List", "jobs", "id", "state", "{\"ended\": true}"},
                              LIVE_JOBS = {CALL_JOBS "List", "jobs", "id", "state", "{}"},
                              TIMERS = {CALL_ACTORS "ListTimers", "timers", "id", "to", "{}"},
                              LETTERS = {CALL_ACTORS "ListDeadLetters", "letters", "id",
                                         "recipient", "{}"},
                              ACTORS = {CALL_ACTORS "ListActors", "actors", "name", "kind", "{}"},
                              EXCHANGES = {CALL_ACTORS "ListActors", "actors", "name", "kind",
                                           "{\"kind\": \"exchange\"}"};

static void offer_verbs(struct line *line)
{
    for (size_t i = 0; i < n_verbs; i++)
        if (!verb_table[i].hidden)
            candidates_add(&line->candidates, verb_table[i].name, verb_table[i].summary);
}

/* A line that begins with a tab: names of files. */
static void offer_files(struct line *line)
{
    (void)line;
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
    {"ID", "unschedule", .list = &TIMERS},
    {"ID", "dead-letters", .list = &LETTERS},
    {"ID", "retry", .list = &LETTERS},
    {"ID", "purge", .list = &LETTERS},
    {"ID", "cancel", .list = &LIVE_JOBS},
    {"ID", .list = &JOBS},
    {"JOB", .list = &JOBS},
    {"ACTOR", .list = &ACTORS},
    {"ADDRESS", .list = &ACTORS},
    {"EXCHANGE", .list = &EXCHANGES},
    {"NAME", "exchanges", .list = &EXCHANGES},
    {"FILE", .offer = offer_files},
    {"DIR", .offer = offer_files},
    {"PATH", .offer = offer_files},
    {"VERB", .offer = offer_verbs},
    {"KIND", "--kind", .words = "slot pool group exchange client"},
    {"KIND", "exchanges", .words = "single typed-single typed-multi routing-key pattern"},
    {"STATE", .words = "queued running backoff delayed succeeded rejected cancelled dead"},
    {"REASON", .words = "unhandled no-match gone mailbox-full dropped late-reply wrong-reply "
                        "unknown-death loop no-memory job error crash"},
    {"WHAT", "--messages", .words = "enqueued dispatched unhandled all none"},
    {"CAUSE", .words = "retry exit signal oom job-timeout watchdog start-timeout violation "
                       "no-progress stop supervisor system-call result-too-large"},
};

/* `option` is NULL for an operand. */
static bool means(const struct meaning *meaning, const struct line *line, const char *word,
                  const char *option)
{
    if (strcmp(meaning->word, word) != 0)
        return false;
    if (!meaning->where)
        return true;
    if (strncmp(meaning->where, "--", 2) == 0)
        return option && strcmp(meaning->where + 2, option) == 0;
    return !option && verb_is(line, meaning->where);
}

static void offer(struct line *line, const char *word, const char *option)
{
    const struct meaning *meaning = meanings, *end = meanings + ELEMENTS(meanings);

    while (meaning < end && !means(meaning, line, word, option))
        meaning++;
    if (meaning == end) {
        /* Not a name for something: the operand itself. */
        if (!option && *word >= 'a' && *word <= 'z')
            candidates_add(&line->candidates, word, NULL);
    } else if (meaning->targets) {
        live_targets(line->invocation, &line->candidates, meaning->targets);
    } else if (meaning->list) {
        live_list(line->invocation, &line->candidates, meaning->list);
    } else if (meaning->words) {
        candidates_add_words(&line->candidates, meaning->words);
    } else {
        meaning->offer(line);
    }
}

/* ---- the command line ---- */

/* Whether the command line has an option, under any of its names. */
static bool is_given(const struct line *line, const char *option)
{
    struct option_use use;

    for (size_t i = 0; i + 1 < line->invocation->n_operands; i++) {
        const char *word = line->invocation->operands[i];

        if (word[0] == '-' && options_look_up(line->sets, word, &use) &&
            strcmp(use.name, option) == 0)
            return true;
    }
    return false;
}

#define USAGE_WORD_MAX 128

/* Finds what stands at an operand's place in the verb's usage line, without brackets and dots:
 * "TARGET", "list|show", "GROUP/CELL". Returns false if there is no such place. */
static bool usage_at(const struct line *line, size_t place, char ret[USAGE_WORD_MAX])
{
    const char *usage = line->verb->operands, *other = strstr(usage, " | --all ");
    size_t size, n = 0;

    if (other && is_given(line, "all"))
        usage = other + strlen(" | --all ");
    size = strcspn(usage, " ");
    for (; place > 0 && !memmem(usage, size, "...", 3); place--) {
        usage += size + strspn(usage + size, " ");
        if (*usage == '\0' || *usage == '|')
            return false;
        size = strcspn(usage, " ");
    }
    for (size_t i = 0; i < size && n + 1 < USAGE_WORD_MAX; i++)
        if (!strchr("[].", usage[i]))
            ret[n++] = usage[i];
    ret[n] = '\0';
    return true;
}

static void add_option(const char *name, const char *help, void *userdata)
{
    struct line *line = userdata;
    char word[64];

    snprintf(word, sizeof(word), "--%s", name);
    candidates_add(&line->candidates, word, help);
}

static void offer_operand(struct line *line)
{
    char word[USAGE_WORD_MAX];
    const char *at = word;

    if (!line->verb) {
        offer_verbs(line);
        return;
    }
    if (!usage_at(line, line->n_operands, word))
        return;
    while (*at != '\0') {
        const size_t length = strcspn(at, "|");
        char one[USAGE_WORD_MAX];

        snprintf(one, sizeof(one), "%.*s", (int)length, at);
        offer(line, one, NULL);
        at += length + (at[length] == '|');
    }
}

/* The supervisor that is asked is that of the command line. */
static void note_value(struct line *line, const struct option_use *use, const char *value)
{
    if (strcmp(use->name, "socket") == 0)
        line->invocation->options.socket = value;
}

static void take_operand(struct line *line, const char *word)
{
    static const struct verb unknown = {.name = "", .operands = ""};

    if (line->verb) {
        line->n_operands++;
        return;
    }
    line->verb = find_verb(word);
    if (!line->verb)
        line->verb = &unknown;
    line->sets |= line->verb->options;
}

/* Takes a complete word. Returns whether `*ret` is an option whose value is the next word. */
static bool take_word(struct line *line, const char *word, struct option_use *ret)
{
    if (line->operands_only || word[0] != '-' || word[1] == '\0') {
        take_operand(line, word);
        return false;
    }
    if (strcmp(word, "--") == 0) {
        line->operands_only = true;
        return false;
    }
    if (!options_look_up(line->sets, word, ret) || !ret->argument)
        return false;
    if (ret->value)
        note_value(line, ret, ret->value);
    return !ret->value;
}

static void offer_option(struct line *line, char *before, size_t size)
{
    const char *typed = line->candidates.typed;
    struct option_use use;

    if (!strchr(typed, '=')) {
        options_each(line->sets, add_option, line);
        return;
    }
    if (!options_look_up(line->sets, typed, &use) || !use.argument)
        return;
    snprintf(before, size, "--%s=", use.name);
    line->candidates.before = before;
    line->candidates.typed = use.value;
    offer(line, use.argument, use.name);
}

int verb_complete(struct invocation *invocation)
{
    const size_t n = invocation->n_operands;
    struct line line = {.invocation = invocation, .sets = OPTIONS_COMMON};
    struct option_use awaiting;
    bool awaits = false;
    char before[64];

    for (size_t i = 0; i + 1 < n; i++) {
        const char *word = invocation->operands[i];

        if (awaits)
            note_value(&line, &awaiting, word);
        awaits = awaits ? false : take_word(&line, word, &awaiting);
    }
    line.candidates.typed = n > 0 ? invocation->operands[n - 1] : "";
    line.candidates.before = "";
    if (awaits)
        offer(&line, awaiting.argument, awaiting.name);
    else if (!line.operands_only && line.candidates.typed[0] == '-')
        offer_option(&line, before, sizeof(before));
    else
        offer_operand(&line);
    return EXIT_OK;
}
