/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/complete/live.h"

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whoever presses the tab key waits for it. */
#define PATIENCE  (500 * USEC_PER_MSEC)
#define NAME_SIZE 768

struct search {
    struct candidates *candidates;
    usec_t deadline;
    unsigned which;
};

static bool is_full(const struct candidates *candidates)
{
    return candidates->n >= CANDIDATES_MAX;
}

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

void live_targets(struct invocation *invocation, struct candidates *candidates, unsigned which)
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
                   list->about ? field_text(item, list->about) : NULL);
}

/* Reads pages until there are enough or it has taken too long. */
void live_list(struct invocation *invocation, struct candidates *candidates,
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

#define WORD_MAX 512

static bool is_printable(const char *word)
{
    for (; *word != '\0'; word++)
        if ((unsigned char)*word < ' ' || *word == 0x7f)
            return false;
    return true;
}

void candidates_add(struct candidates *candidates, const char *word, const char *about)
{
    if (is_full(candidates) || *word == '\0' || !is_printable(word) ||
        strncmp(word, candidates->typed, strlen(candidates->typed)) != 0)
        return;
    candidates->n++;
    printf("%s%s\t%s\n", candidates->before, word, about ? about : "");
}

void candidates_add_words(struct candidates *candidates, const char *words)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        char word[WORD_MAX];

        snprintf(word, sizeof(word), "%.*s", (int)length, words);
        candidates_add(candidates, word, NULL);
        words += length;
        words += strspn(words, " ");
    }
}
