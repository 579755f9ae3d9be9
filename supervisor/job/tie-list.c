/* SPDX-License-Identifier: MIT */
#include "supervisor/job/tie-list.h"

#include "supervisor/job/job.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const CONDITIONS[_TIE_N_CONDITIONS] = {
    [TIE_SUCCESS] = "success", [TIE_FAILURE] = "failure", [TIE_END] = "end"};

const char *tie_condition_to_string(enum tie_condition condition)
{
    return CONDITIONS[condition];
}

static const struct tie *find_parent(const struct tie_list *list, const char *id)
{
    for (unsigned i = 0; i < list->n; i++)
        if (strcmp(list->parents[i].id, id) == 0)
            return &list->parents[i];
    return NULL;
}

int tie_set_id(struct tie *tie, const char *id, size_t size)
{
    if (size >= sizeof(tie->id) || !protocol_name_valid(id, size))
        return -EINVAL;
    memcpy(tie->id, id, size);
    tie->id[size] = '\0';
    return 0;
}

int tie_list_parse(struct tie_list *list, const char *ids, size_t size,
                   enum tie_condition condition)
{
    const char *const end = ids + size;

    for (const char *comma; ids <= end; ids = comma + 1) {
        struct tie parent = {.condition = (uint8_t)condition};

        comma = memchr(ids, ',', (size_t)(end - ids));
        if (!comma)
            comma = end;
        if (list->n == JOB_PARENTS_MAX || tie_set_id(&parent, ids, (size_t)(comma - ids)) < 0)
            return -EINVAL;
        if (!find_parent(list, parent.id))
            list->parents[list->n++] = parent;
    }
    return 0;
}

/* ---- the text: "s0 17 ID,": condition, or 'b' for the batch; the end that is known; key; id
 * ---- */

#define ENTRY_MAX (2 + 1 + 20 + 1 + PROTOCOL_NAME_MAX + 1)

static const char LETTERS[] = {[TIE_SUCCESS] = 's', [TIE_FAILURE] = 'f', [TIE_END] = 'e'};

static int read_entry(struct tie_list *list, const char *entry)
{
    struct tie tie = {.id = ""};
    const char *letter;
    long long key;
    unsigned end;
    char kind;

    if (sscanf(entry, "%c%1u %lld %64s", &kind, &end, &key, tie.id) != 4 ||
        (end != 0 && !job_state_is_end(end)))
        return -EBADMSG;
    tie.key = key;
    tie.end = (uint8_t)end;
    letter = memchr(LETTERS, kind, sizeof(LETTERS));
    if (kind == 'b') {
        list->batch = tie;
    } else if (letter && list->n < JOB_PARENTS_MAX) {
        tie.condition = (uint8_t)(letter - LETTERS);
        list->parents[list->n++] = tie;
    } else {
        return -EBADMSG;
    }
    return 0;
}

int tie_list_read(struct tie_list *ret, const char *text, size_t size)
{
    const char *const end = text + size;
    int r = 0;

    ret->n = 0;
    ret->batch = (struct tie){.id = ""};
    for (const char *comma; r == 0 && text < end; text = comma + 1) {
        char entry[ENTRY_MAX + 1];

        comma = memchr(text, ',', (size_t)(end - text));
        if (!comma || (size_t)(comma - text) >= sizeof(entry))
            return -EBADMSG;
        *(char *)mempcpy(entry, text, (size_t)(comma - text)) = '\0';
        r = read_entry(ret, entry);
    }
    return r;
}

static int put_tie(char *at, char kind, const struct tie *tie)
{
    return snprintf(at, ENTRY_MAX + 1, "%c%u %lld %s,", kind, tie->end, (long long)tie->key,
                    tie->id);
}

char *tie_list_write(const struct tie_list *list)
{
    char text[(JOB_PARENTS_MAX + 1) * ENTRY_MAX + 1] = "", *at = text;

    if (list->batch.id[0] != '\0')
        at += put_tie(at, 'b', &list->batch);
    for (unsigned i = 0; i < list->n; i++)
        at += put_tie(at, LETTERS[list->parents[i].condition], &list->parents[i]);
    return strdup(text);
}
