/* SPDX-License-Identifier: MIT */

/* Brings ties back from the database, or from the supervisor before an upgrade. */

#include "shared/base/cleanup.h"
#include "supervisor/job/job-ties-private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- as text ---- */

/* "b3f,": it is a member of the batch with that key; of its own: it is one.
 * "d1f2e s0 ID,": a parent: its key, the condition, and the end that is known. */
#define ENTRY_MAX (1 + 16 + 1 + 2 + 1 + PROTOCOL_ID_TEXT + 1)

static struct tie_key batch_of(const struct job_ties *ties)
{
    if (ties->is_batch)
        return ties->key;
    return ties->batch ? ties->batch->key : (struct tie_key){0};
}

int ties_write(struct job_ties *ties)
{
    const struct tie_key batch = batch_of(ties);
    char *text = malloc(((size_t)ties->n_edges + 1) * ENTRY_MAX + 1);
    char id[PROTOCOL_ID_TEXT], *at = text;

    if (!text)
        return -ENOMEM;
    *text = '\0';
    if (batch.value != 0)
        at += snprintf(at, ENTRY_MAX, "b%llx,", (unsigned long long)batch.value);
    for (unsigned i = 0; i < ties->n_edges; i++) {
        const struct job_edge *edge = &ties->edges[i];
        const struct job_ties *parent = edge->parent;

        at += snprintf(at, ENTRY_MAX + 1, "%c%llx %c%u %s,", parent->key.durable ? 'd' : 'h',
                       (unsigned long long)parent->key.value, "sfe"[edge->condition], parent -> end,
                       ties_format_id(parent, id));
    }
    free(ties->text);
    ties->text = text;
    return 0;
}

struct text {
    uint64_t batch; /* value of its key; 0 = none */
    struct tie_parent parents[JOB_PARENTS_MAX];
    unsigned n;
};

static int read_parent(const char *entry, struct tie_parent *ret)
{
    static const char conditions[] = "sfe";
    char kind, condition;
    unsigned long long value;
    unsigned state;

    *ret = (struct tie_parent){0};
    if (sscanf(entry, "%c%llx %c%1u %64s", &kind, &value, &condition, &state, ret->id) != 5 ||
        condition == '\0' || !strchr(conditions, condition) ||
        (state != 0 && !job_state_is_end(state)))
        return -EBADMSG;
    ret->key = (struct tie_key){.value = value, .durable = kind == 'd'};
    ret->condition = (uint8_t)(strchr(conditions, condition) - conditions);
    ret->end = (uint8_t)state;
    return 0;
}

/* Reads an entry of `size` bytes. */
static int read_entry(const char *entry, size_t size, struct text *ret)
{
    char copy[ENTRY_MAX + 1];

    if (size >= sizeof(copy))
        return -EBADMSG;
    memcpy(copy, entry, size);
    copy[size] = '\0';
    if (copy[0] == 'b') {
        ret->batch = strtoull(copy + 1, NULL, 16);
        return 0;
    }
    return ret->n == JOB_PARENTS_MAX ? -EBADMSG : read_parent(copy, &ret->parents[ret->n++]);
}

/* Returns NULL with `*ret_error`; 0 = there is no text. The caller frees it. */
static struct text *read_text(const char *bytes, size_t size, int *ret_error)
{
    const char *const end = bytes + size;
    struct text *text = size > 0 ? calloc(1, sizeof(*text)) : NULL;
    int r = size > 0 && !text ? -ENOMEM : 0;

    while (text && r == 0 && bytes < end) {
        const char *comma = memchr(bytes, ',', (size_t)(end - bytes));

        r = comma ? read_entry(bytes, (size_t)(comma - bytes), text) : -EBADMSG;
        bytes = comma + 1;
    }
    *ret_error = r;
    if (r == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- before the jobs ---- */

static void settle_one(struct job_table *table, struct job_ties *ties)
{
    ties->unclaimed = false;
    list_unlink(&ties->link);
    list_push_back(&table->ties.all, &ties->link);
}

static void claim(struct job_table *table, struct job *job, struct job_ties *ties)
{
    job->rare->ties = ties;
    ties->job = job;
    if (ties->unclaimed)
        settle_one(table, ties);
    free(ties->id);
    ties->id = NULL;
    if (job_ended(job))
        ties->end = (uint8_t)job->state;
    ties_due(table, ties);
}

/* Returns the ties with this key, which are made if there are none; NULL without memory. A job that
 * is not durable may have been restored before. */
static struct job_ties *take(struct job_table *table, struct tie_key key, const char *id)
{
    struct job *job = key.durable || key.value == 0 ? NULL : job_by_handle(table, key.value);
    struct job_ties *ties = ties_find(table, key);

    if (ties)
        return ties;
    ties = !job || job_make_rare(job) == 0 ? ties_new(table, key, id) : NULL;
    if (!ties)
        return NULL;
    if (job) {
        claim(table, job, ties);
        return ties;
    }
    ties->unclaimed = true;
    list_unlink(&ties->link);
    list_push_back(&table->ties.unclaimed, &ties->link);
    return ties;
}

static int restore_edges(struct job_table *table, struct job_ties *ties, const struct text *text)
{
    ties->edges = calloc(text->n, sizeof(*ties->edges));
    if (!ties->edges)
        return -ENOMEM;
    for (unsigned i = 0; i < text->n; i++) {
        const struct tie_parent *read = &text->parents[i];
        struct job_ties *parent = take(table, read->key, read->id);

        if (!parent)
            return -ENOMEM;
        if (read->end != 0 && !parent->job)
            parent->end = read->end;
        ties_link(ties, parent, read->condition);
        if (parent->end != 0)
            ties_due(table, parent);
    }
    return 0;
}

int ties_restore(struct job_table *table, struct tie_key key, const char *bytes, size_t size,
                 bool counts)
{
    int r;
    _cleanup_free_ struct text *text = read_text(bytes, size, &r);
    struct job_ties *ties, *batch;

    if (!text)
        return r;
    if (counts && text->batch != 0 && text->batch != key.value) {
        batch = take(table, (struct tie_key){text->batch, key.durable}, NULL);
        if (!batch)
            return -ENOMEM;
        batch->tally.live++;
    }
    if (text->n == 0)
        return 0;
    ties = take(table, key, NULL);
    if (!ties)
        return -ENOMEM;
    return ties->n_edges > 0 ? 0 : restore_edges(table, ties, text);
}

int ties_restore_batch(struct job_table *table, struct tie_key key, const struct batch_tally *tally)
{
    struct job_ties *ties = take(table, key, NULL);
    uint64_t live;

    if (!ties)
        return -ENOMEM;
    live = ties->tally.live;
    ties->is_batch = true;
    ties->tally = *tally;
    ties->tally.live += live;
    return 0;
}

bool ties_restore_end(struct job_table *table, struct tie_key key, enum job_state end)
{
    struct job_ties *ties = ties_find(table, key);

    if (!ties || ties->n_children == 0)
        return false;
    if (ties->end == 0 && !ties->job)
        ties->end = (uint8_t)end;
    ties_due(table, ties);
    return true;
}

/* ---- the jobs ---- */

/* Those of durable jobs are restored before; others come with their jobs, perhaps later. */
static struct job_ties *find_batch(struct job_table *table, struct tie_key key)
{
    return key.durable || key.value == 0 ? ties_find(table, key) : take(table, key, NULL);
}

int ties_claim(struct job_table *table, struct job *job, struct tie_key key, const char *bytes,
               size_t size)
{
    int r;
    _cleanup_free_ struct text *text = read_text(bytes, size, &r);
    struct tie_key batch = {.value = text ? text->batch : 0, .durable = key.durable};
    struct job_ties *joined = batch.value == key.value ? NULL : find_batch(table, batch);
    struct job_ties *ties = ties_find(table, key);

    if (r < 0 || (!ties && !joined))
        return r;
    if (job_make_rare(job) < 0)
        return -ENOMEM;
    if (!ties)
        ties = take(table, key, NULL);
    if (!ties)
        return -ENOMEM;
    if (!job_own_ties(job))
        claim(table, job, ties);
    if (joined && !ties->batch)
        ties_join(ties, joined);
    return 0;
}

size_t ties_settle(struct job_table *table, bool durable)
{
    size_t n = 0;

    list_for_each_safe (node, &table->ties.unclaimed) {
        struct job_ties *ties = list_entry(node, struct job_ties, link);

        if (ties->key.durable != durable)
            continue;
        settle_one(table, ties);
        ties_drop_edges(table, ties);
        if (ties->end == 0 && ties->n_children > 0) {
            ties->end = JOB_CANCELLED;
            n++;
        }
        ties_due(table, ties); /* frees ties that are not needed */
    }
    return n;
}
