/* SPDX-License-Identifier: MIT */
/* The rows of top: groups, and below open ones their cells and workers, sorted and filtered. */
#include "supervisor/ctl/top/top.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct build {
    struct top_rows *rows;
    const struct top_source *source;
    const struct top_choice *choice;
    usec_t now; /* realtime */
};

void top_rows_deinit(struct top_rows *rows)
{
    free(rows->items);
    *rows = (struct top_rows){0};
}

/* Returns NULL without memory. Valid until the next one is added. */
static struct top_row *add_row(struct top_rows *rows, const struct top_row *row)
{
    const size_t room = rows->allocated > 0 ? rows->allocated * 2 : 64;
    struct top_row *items = rows->items;

    if (rows->n == rows->allocated) {
        items = reallocarray(items, room, sizeof(*items));
        if (!items)
            return NULL;
        rows->items = items;
        rows->allocated = room;
    }
    items[rows->n] = *row;
    return &items[rows->n++];
}

static struct top_row make_row(const json_t *object)
{
    return (struct top_row){.object = object,
                            .state = field_text(object, "state"),
                            .up = -1,
                            .size = -1,
                            .queued = -1,
                            .running = -1,
                            .deaths = -1,
                            .oldest = -1,
                            .took = -1,
                            .run = -1,
                            .rate = -1};
}

static int64_t known(const json_t *object, const char *name)
{
    return field_has(object, name) ? field_int(object, name) : -1;
}

static bool is_open(const struct build *build, const char *address)
{
    return json_object_get(build->choice->open, address);
}

/* ---- sorting ---- */

static bool is_in_trouble(const struct top_row *row)
{
    static const char *const states[] = {"failed", "failing", "degraded", "backoff", "killing"};

    for (size_t i = 0; i < ELEMENTS(states); i++)
        if (strcmp(row->state, states[i]) == 0)
            return true;
    return false;
}

/* Returns the value to sort by. When sorting by name, rows in trouble come first. */
static double key_of(const struct top_row *row, enum top_sort sort)
{
    switch (sort) {
    case TOP_BY_QUEUE:
        return (double)row->queued;
    case TOP_BY_AGE:
        return (double)row->oldest;
    case TOP_BY_RATE:
        return row->rate;
    case TOP_BY_RUN:
        return (double)row->run;
    case TOP_BY_DEATHS:
        return (double)row->deaths;
    default:
        return is_in_trouble(row);
    }
}

/* Numbers in names count as such: worker 10 comes after worker 9. */
static int compare_rows(const void *a, const void *b, void *userdata)
{
    const struct top_choice *choice = userdata;
    const struct top_row *one = a, *other = b;
    const double left = key_of(one, choice->sort), right = key_of(other, choice->sort);
    const int order = (left < right) - (left > right); /* the largest first */

    return order != 0 ? order : strverscmp(one->address, other->address);
}

static void sort_from(const struct build *build, struct top_rows *rows, size_t first)
{
    if (rows->n > first)
        qsort_r(rows->items + first, rows->n - first, sizeof(*rows->items), compare_rows,
                (void *)(uintptr_t)build->choice);
}

/* ---- workers and cells ---- */

static void add_workers(const struct build *build, const json_t *workers, unsigned depth)
{
    const size_t first = build->rows->n;

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);
        struct top_row row = make_row(worker);
        const usec_t since = field_usec(worker, "job_since_at");

        row.depth = depth;
        (void)snprintf(row.address, sizeof(row.address), "%s", field_text(worker, "name"));
        row.deaths = known(worker, "restarts");
        if (since > 0)
            row.run = (int64_t)usec_sub(build->now, since);
        (void)add_row(build->rows, &row);
    }
    sort_from(build, build->rows, first);
}

/* A group or a cell. */
static struct top_row pool_row(const struct build *build, const json_t *pool, const char *group,
                               const char *key)
{
    struct top_row row = make_row(pool);
    const usec_t oldest = field_usec(pool, "oldest_queued_at");

    row.may_open = true;
    (void)snprintf(row.address, sizeof(row.address), "%s%s%s", group, key ? "/" : "",
                   key ? key : "");
    row.open = is_open(build, row.address);
    row.up = known(pool, "up");
    row.size = known(pool, "members");
    row.deaths = known(pool, "deaths");
    if (field_is(pool, "type", "service"))
        return row;
    row.queued = known(pool, "queued");
    row.running = known(pool, "running");
    row.oldest = oldest > 0 ? (int64_t)usec_sub(build->now, oldest) : 0;
    row.took = known(pool, "p99_usec");
    row.run = known(pool, "p99_work_usec");
    return row;
}

static void add_cells(const struct build *build, const char *group, const json_t *cells)
{
    struct top_rows sorted = {0};

    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);
        struct top_row row = pool_row(build, cell, group, field_text(cell, "key"));

        row.depth = 1;
        (void)add_row(&sorted, &row);
    }
    sort_from(build, &sorted, 0);
    for (size_t i = 0; i < sorted.n; i++) {
        (void)add_row(build->rows, &sorted.items[i]);
        if (sorted.items[i].open)
            add_workers(build, json_object_get(sorted.items[i].object, "workers"), 2);
    }
    top_rows_deinit(&sorted);
}

/* ---- groups ---- */

/* Finds a group in an array that is sorted by name, from `*at` on. */
static const json_t *find_sorted(const json_t *groups, const char *name, size_t *at)
{
    for (; *at < json_array_size(groups); (*at)++) {
        const json_t *group = json_array_get(groups, *at);
        const int order = strcmp(field_text(group, "name"), name);

        if (order >= 0)
            return order == 0 ? group : NULL;
    }
    return NULL;
}

static int64_t jobs_done(const json_t *group)
{
    return field_int(group, "succeeded") + field_int(group, "rejected") +
           field_int(group, "cancelled") + field_int(group, "dead");
}

/* `before` is NULL if the group was not there. */
static struct top_row group_row(const struct build *build, const json_t *group,
                                const json_t *before)
{
    struct top_row row = pool_row(build, group, field_text(group, "name"), NULL);
    const int64_t done = before ? jobs_done(group) - jobs_done(before) : -1;

    if (build->source->elapsed > 0 && done >= 0 && row.queued >= 0)
        row.rate = (double)done * (double)USEC_PER_SEC / (double)build->source->elapsed;
    return row;
}

/* Leaves out rows from `group` on that the filter does not name; a group stays if anything in it
 * does. */
static void apply_filter(const struct build *build, size_t group)
{
    struct top_rows *rows = build->rows;
    const char *filter = build->choice->filter;
    size_t n = group + 1;

    if (strcasestr(rows->items[group].address, filter))
        return;
    for (size_t i = group + 1; i < rows->n; i++)
        if (strcasestr(rows->items[i].address, filter))
            rows->items[n++] = rows->items[i];
    rows->n = n > group + 1 ? n : group;
}

static const json_t *status_of(const struct build *build, const char *name)
{
    size_t at = 0;

    return find_sorted(json_object_get(build->source->status, "groups"), name, &at);
}

static void add_group(const struct build *build, const struct top_row *row)
{
    const size_t first = build->rows->n;
    const json_t *status = row->open ? status_of(build, row->address) : NULL;
    const json_t *cells = json_object_get(status, "cells");

    if (!add_row(build->rows, row))
        return;
    if (cells)
        add_cells(build, field_text(row->object, "name"), cells);
    else
        add_workers(build, json_object_get(status, "workers"), 1);
    apply_filter(build, first);
}

void top_rows_build(struct top_rows *rows, const struct top_source *source,
                    const struct top_choice *choice)
{
    const struct build build = {
        .rows = rows, .source = source, .choice = choice, .now = clock_realtime()};
    const json_t *groups = json_object_get(source->brief, "groups");
    const json_t *before = json_object_get(source->before, "groups");
    struct top_rows sorted = {0};
    size_t at = 0;

    rows->n = 0;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        const struct top_row row =
            group_row(&build, group, find_sorted(before, field_text(group, "name"), &at));

        (void)add_row(&sorted, &row);
    }
    sort_from(&build, &sorted, 0);
    for (size_t i = 0; i < sorted.n; i++)
        add_group(&build, &sorted.items[i]);
    top_rows_deinit(&sorted);
}
