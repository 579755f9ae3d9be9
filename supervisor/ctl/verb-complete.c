/* SPDX-License-Identifier: MIT */
/* The verb complete: what a shell offers for the last word of a command line. */

#include "supervisor/ctl/verb.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/complete/live.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <string.h>

/* ---- usage lines ---- */

#define USAGE_WORD_MAX 128

/* Whether the command line has this option. */
typedef bool (*usage_given_fn)(const char *option, void *userdata);

#define USAGE_MAX 512

/* Without brackets: what is optional can be completed as well. */
static void without_brackets(const char *usage, char ret[USAGE_MAX])
{
    size_t n = 0;

    for (; *usage != '\0' && n < USAGE_MAX - 1; usage++)
        if (*usage != '[' && *usage != ']')
            ret[n++] = *usage;
    ret[n] = '\0';
}

/* The next word at `*at`, which is advanced; NULL at the end. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " ");

    if (*word == '\0')
        return NULL;
    *at = word + strcspn(word, " ");
    if (**at == ' ')
        *(*at)++ = '\0';
    return word;
}

/* Finds a position in one alternative, up to "|" or the end. `*ret_applies`: its options are given.
 */
static const char *find(char **at, size_t position, usage_given_fn given, void *userdata,
                        bool *ret_applies)
{
    const char *found = NULL, *word;
    size_t i = 0;

    *ret_applies = true;
    while ((word = next_word(at)) && strcmp(word, "|") != 0) {
        const char *dots = strstr(word, "...");

        if (word[0] == '-' && word[1] == '-') {
            *ret_applies = *ret_applies && given(word, userdata);
            continue;
        }
        if (i == position || (dots && i < position))
            found = word;
        i++;
    }
    return found;
}

/*
 * Stores what stands at that position, the first being 0, without brackets and dots: "TARGET",
 * "list|show", "GROUP/CELL". Of alternatives, the first counts whose options are all given. Returns
 * false if there is nothing.
 */
static bool usage_at(const char *usage, size_t position, usage_given_fn given, void *userdata,
                     char ret[USAGE_WORD_MAX])
{
    char buffer[USAGE_MAX], *at = buffer;
    bool applies, any = false;

    without_brackets(usage, buffer);
    while (*at != '\0') {
        const bool flagged = strncmp(at + strspn(at, " "), "--", 2) == 0;
        const char *found = find(&at, position, given, userdata, &applies);

        /* One without options gives way to one whose options are given. */
        if (!found || !applies || (any && !flagged))
            continue;
        snprintf(ret, USAGE_WORD_MAX, "%.*s", (int)(strcspn(found, ".")), found);
        any = true;
    }
    return any;
}

/* ---- the command line ---- */

/* A command line up to the word that is completed. */
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

/* ---- what stands for what in usage lines ---------------------------------------------------- */

static void offer_targets(struct line *line)
{
    live_targets(line->invocation, &line->candidates, LIVE_GROUPS | LIVE_CELLS | LIVE_WORKERS);
}

static void offer_pools(struct line *line)
{
    live_targets(line->invocation, &line->candidates, LIVE_GROUPS | LIVE_CELLS);
}

static void offer_groups(struct line *line)
{
    live_targets(line->invocation, &line->candidates, LIVE_GROUPS);
}

static void offer_workers(struct line *line)
{
    live_targets(line->invocation, &line->candidates, LIVE_WORKERS);
}

static void offer_ids(struct line *line)
{
    if (verb_is(line, "unschedule"))
        live_timers(line->invocation, &line->candidates);
    else if (verb_is(line, "dead-letters") || verb_is(line, "retry") || verb_is(line, "purge"))
        live_dead_letters(line->invocation, &line->candidates);
    else
        live_jobs(line->invocation, &line->candidates, !verb_is(line, "cancel"));
}

static void offer_actors(struct line *line)
{
    live_actors(line->invocation, &line->candidates, NULL);
}

static void offer_exchanges(struct line *line)
{
    live_actors(line->invocation, &line->candidates, "exchange");
}

static void offer_files(struct line *line)
{
    candidates_add_files(&line->candidates);
}

static void offer_verbs(struct line *line)
{
    for (size_t i = 0; i < n_verbs; i++)
        if (!verb_table[i].hidden)
            candidates_add(&line->candidates, verb_table[i].name, verb_table[i].summary);
}

static const struct meaning {
    const char *word;  /* in a usage line, or what an option takes */
    const char *where; /* the verb, or the option as "--kind", that it is for; NULL = all */
    void (*offer)(struct line *line);
    const char *words; /* or these */
} meanings[] = {
    {"TARGET", NULL, offer_targets, NULL},
    {"GROUP/CELL", NULL, offer_pools, NULL},
    {"GROUP", NULL, offer_groups, NULL},
    {"WORKER", NULL, offer_workers, NULL},
    {"ID", "--id", NULL, ""},
    {"ID", NULL, offer_ids, NULL},
    {"JOB", NULL, offer_ids, NULL},
    {"ACTOR", NULL, offer_actors, NULL},
    {"ADDRESS", NULL, offer_actors, NULL},
    {"EXCHANGE", NULL, offer_exchanges, NULL},
    {"NAME", "exchanges", offer_exchanges, NULL},
    {"FILE", NULL, offer_files, NULL},
    {"DIR", NULL, offer_files, NULL},
    {"PATH", NULL, offer_files, NULL},
    {"VERB", NULL, offer_verbs, NULL},
    {"KIND", "--kind", NULL, "slot pool group exchange client"},
    {"KIND", "exchanges", NULL, "single typed-single typed-multi routing-key pattern"},
    {"STATE", NULL, NULL, "queued running backoff delayed succeeded rejected cancelled dead"},
    {"REASON", NULL, NULL,
     "unhandled no-match gone mailbox-full dropped late-reply wrong-reply unknown-death loop "
     "no-memory job error crash"},
    {"WHAT", "--messages", NULL, "enqueued dispatched unhandled all none"},
    {"CAUSE", NULL, NULL,
     "retry exit signal oom job-timeout watchdog start-timeout violation no-progress stop "
     "supervisor system-call result-too-large"},
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
    for (size_t i = 0; i < ELEMENTS(meanings); i++) {
        if (!means(&meanings[i], line, word, option))
            continue;
        if (meanings[i].offer)
            meanings[i].offer(line);
        else
            candidates_add_words(&line->candidates, meanings[i].words);
        return;
    }
    /* Not a name for something: the operand itself. */
    if (!option && *word >= 'a' && *word <= 'z')
        candidates_add(&line->candidates, word, NULL);
}

/* ---- the command line ----------------------------------------------------------------------- */

static void add_option(const char *name, const char *help, void *userdata)
{
    struct line *line = userdata;
    char word[64];

    snprintf(word, sizeof(word), "--%s", name);
    candidates_add(&line->candidates, word, help);
}

/* Whether the command line has an option, under any of its names. */
static bool is_given(const char *option, void *userdata)
{
    const struct line *line = userdata;
    struct option_use use;

    for (size_t i = 0; i + 1 < line->invocation->n_operands; i++) {
        const char *word = line->invocation->operands[i];

        if (word[0] == '-' && options_look_up(line->sets, word, &use) &&
            strcmp(use.name, option + 2) == 0)
            return true;
    }
    return false;
}

static void offer_operand(struct line *line)
{
    char word[USAGE_WORD_MAX];
    const char *at = word;

    if (!line->verb) {
        offer_verbs(line);
        return;
    }
    if (!usage_at(line->verb->operands, line->n_operands, is_given, line, word))
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
