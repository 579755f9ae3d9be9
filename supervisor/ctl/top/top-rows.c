/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/top/top-rows.h"

#include "shared/base/cleanup.h"

#include "supervisor/ctl/text/field.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct build {
    struct top_rows *rows;
    struct top_source *source;
    struct top_processes *processes;
    const struct top_choice *choice;
    usec_t now;        /* realtime */
    const char *group; /* the current one */
};

void top_rows_deinit(struct top_rows *rows)
{
    free(rows->items);
    *rows = (struct top_rows){0};
}

/* Returns NULL without memory. Valid until the next one is added. */
static struct top_row *add_row(struct top_rows *rows, enum top_kind kind, const json_t *object)
{
    const size_t room = rows->allocated > 0 ? rows->allocated * 2 : 64;
    struct top_row *items;

    if (rows->n == rows->allocated) {
        items = reallocarray(rows->items, room, sizeof(*items));
        if (!items) {
            rows->error = -ENOMEM;
            return NULL;
        }
        rows->items = items;
        rows->allocated = room;
    }
    rows->items[rows->n] = (struct top_row){
        .kind = kind,
        .object = object,
        .state = field_text(object, "state"),
        .slot = -1,
        .up = -1,
        .size = -1,
        .queued = -1,
        .running = -1,
        .deaths = -1,
        .oldest = -1,
        .wait = -1,
        .run = -1,
        .rate = -1,
        .cpu = -1,
        .memory = -1,
    };
    return &rows->items[rows->n++];
}

static int64_t known(const json_t *object, const char *name)
{
    return field_has(object, name) ? field_int(object, name) : -1;
}

static double known_rate(const json_t *object)
{
    const json_t *rate = json_object_get(object, "rate");

    return rate ? json_real_value(rate) : -1;
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
    case TOP_BY_CPU:
        return row->cpu;
    case TOP_BY_MEMORY:
        return (double)row->memory;
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
    int order = (left < right) - (left > right); /* the largest first */

    if (order == 0)
        order = strverscmp(one->address, other->address);
    return choice->reverse ? -order : order;
}

static void sort_from(const struct build *build, size_t first)
{
    struct top_rows *rows = build->rows;

    if (rows->n > first)
        qsort_r(rows->items + first, rows->n - first, sizeof(*rows->items), compare_rows,
                (void *)(uintptr_t)build->choice);
}

/* ---- workers and cells ---- */

static void add_worker(const struct build *build, const json_t *worker, unsigned depth)
{
    struct top_row *row = add_row(build->rows, TOP_WORKER, worker);
    struct top_process process;
    const usec_t since = field_usec(worker, "job_since_at");

    if (!row)
        return;
    row->depth = depth;
    row->group = build->group;
    (void)snprintf(row->address, sizeof(row->address), "%s", field_text(worker, "name"));
    row->slot = known(worker, "slot");
    row->deaths = known(worker, "restarts");
    if (since > 0)
        row->run = (int64_t)usec_sub(build->now, since);
    row->rate = known_rate(worker);
    if (!field_has(worker, "pid"))
        return;
    process = top_processes_read(build->processes, (pid_t)field_int(worker, "pid"));
    row->cpu = process.cpu;
    row->memory = process.memory > 0 ? (int64_t)process.memory : -1;
}

static bool is_open(const struct build *build, const char *address)
{
    return build->choice->everything || json_object_get(build->choice->open, address);
}

/* Adds what its workers use to a row. */
static void sum_up(struct top_rows *rows, size_t row, size_t first)
{
    struct top_row *into = &rows->items[row];

    for (size_t i = first; i < rows->n; i++) {
        const struct top_row *item = &rows->items[i];

        if (item->depth != into->depth + 1)
            continue;
        if (item->cpu >= 0)
            into->cpu = (into->cpu < 0 ? 0 : into->cpu) + item->cpu;
        if (item->memory >= 0)
            into->memory = (into->memory < 0 ? 0 : into->memory) + item->memory;
    }
}

/* Adds the workers below the row `parent`, or only what they use if it is not open. */
static void add_workers(const struct build *build, const json_t *workers, size_t parent)
{
    struct top_rows *rows = build->rows;
    const unsigned depth = rows->items[parent].depth + 1;
    const bool open = rows->items[parent].open;
    const size_t first = rows->n;

    for (size_t i = 0; i < json_array_size(workers); i++)
        add_worker(build, json_array_get(workers, i), depth);
    sum_up(rows, parent, first);
    if (open)
        sort_from(build, first);
    else
        rows->n = first;
}

static int64_t count_up(const json_t *workers)
{
    int64_t n = 0;

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        n += field_is(worker, "state", "idle") || field_is(worker, "state", "busy");
    }
    return n;
}

static void fill_cell(const struct build *build, struct top_row *row, const json_t *cell)
{
    const usec_t oldest = field_usec(cell, "oldest_queued_at");

    row->depth = 1;
    row->group = build->group;
    row->may_open = true;
    (void)snprintf(row->address, sizeof(row->address), "%s/%s", build->group,
                   field_text(cell, "key"));
    row->open = is_open(build, row->address);
    row->up = count_up(json_object_get(cell, "workers"));
    row->size = known(cell, "size");
    row->queued = known(cell, "queued");
    row->running = known(cell, "running");
    row->deaths = known(cell, "deaths");
    row->oldest = oldest > 0 ? (int64_t)usec_sub(build->now, oldest) : 0;
    row->run = known(cell, "p99_work_usec");
    row->rate = known_rate(cell);
}

/* Cells are sorted before their workers are added. */
static void add_cells(const struct build *build, const json_t *cells, size_t parent)
{
    struct top_rows *rows = build->rows, sorted = {0};
    const size_t first = rows->n;

    for (size_t i = 0; i < json_array_size(cells); i++) {
        struct top_row *row = add_row(rows, TOP_CELL, json_array_get(cells, i));

        if (row)
            fill_cell(build, row, json_array_get(cells, i));
    }
    sort_from(build, first);
    sorted.n = rows->n - first;
    if (sorted.n > 0)
        sorted.items = reallocarray(NULL, sorted.n, sizeof(*sorted.items));
    if (sorted.items)
        memcpy(sorted.items, rows->items + first, sorted.n * sizeof(*sorted.items));
    rows->n = first;
    for (size_t i = 0; sorted.items && i < sorted.n; i++) {
        struct top_row *row = add_row(rows, TOP_CELL, sorted.items[i].object);

        if (!row)
            break;
        *row = sorted.items[i];
        add_workers(build, json_object_get(row->object, "workers"), rows->n - 1);
    }
    sum_up(rows, parent, first);
    free(sorted.items);
}

/* ---- groups ---- */

/* Returns what 99 % of the jobs between the two readings took at most; -1 = there were none. */
static int64_t percentile(const json_t *bounds, const json_t *now, const json_t *before)
{
    const json_t *counts = json_object_get(now, "buckets");
    const json_t *old = json_object_get(before, "buckets");
    int64_t n = 0, seen = 0;

    for (size_t i = 0; i < json_array_size(counts); i++)
        n += json_integer_value(json_array_get(counts, i)) -
             json_integer_value(json_array_get(old, i));
    if (n <= 0)
        return -1;
    for (size_t i = 0; i < json_array_size(bounds); i++) {
        seen += json_integer_value(json_array_get(counts, i)) -
                json_integer_value(json_array_get(old, i));
        if (seen * 100 >= n * 99)
            return json_integer_value(json_array_get(bounds, i));
    }
    return INT64_MAX;
}

/* Finds a group of the metrics before; they are sorted by name, as those of now. */
static const json_t *find_before(const struct top_source *source, const char *name, size_t *at)
{
    const json_t *groups = json_object_get(source->before, "groups");

    for (; *at < json_array_size(groups); (*at)++) {
        const json_t *group = json_array_get(groups, *at);
        const int order = strcmp(field_text(group, "name"), name);

        if (order >= 0)
            return order == 0 ? group : NULL;
    }
    return NULL;
}

static int64_t sum_of(const json_t *counts, const char *left_out)
{
    int64_t sum = 0;
    const char *name;
    json_t *count;

    json_object_foreach((json_t *)(uintptr_t)counts, name,
                        count) if (!left_out || strcmp(name, left_out) != 0) sum +=
        json_integer_value(count);
    return sum;
}

static void fill_group(const struct build *build, struct top_row *row, const json_t *group,
                       const json_t *before)
{
    const json_t *bounds = json_object_get(build->source->metrics, "bounds_usec");
    const json_t *workers = json_object_get(group, "workers");
    const json_t *ended = json_object_get(group, "ended");

    row->group = build->group;
    row->may_open = true;
    (void)snprintf(row->address, sizeof(row->address), "%s", build->group);
    row->open = is_open(build, row->address);
    row->up = field_int(workers, "idle") + field_int(workers, "busy");
    row->size = sum_of(workers, NULL);
    row->queued = known(group, "queued");
    row->running = known(group, "running");
    row->oldest = known(group, "oldest_usec");
    row->deaths =
        sum_of(json_object_get(group, "deaths"), "stop") + field_int(group, "command_deaths");
    if (!ended)
        return;
    row->rate = top_source_rate(build->source, row->address, sum_of(ended, NULL));
    if (!before)
        return;
    row->wait = percentile(bounds, json_object_get(group, "wait"), json_object_get(before, "wait"));
    row->run = percentile(bounds, json_object_get(group, "run"), json_object_get(before, "run"));
}

static bool matches(const char *address, const char *filter)
{
    return *filter == '\0' || strcasestr(address, filter);
}

/* Leaves out what the filter does not name; a group stays if anything in it does. */
static void apply_filter(const struct build *build, size_t group)
{
    struct top_rows *rows = build->rows;
    const char *filter = build->choice->filter;
    size_t n = group + 1;

    if (matches(rows->items[group].address, filter))
        return;
    for (size_t i = group + 1; i < rows->n; i++)
        if (matches(rows->items[i].address, filter))
            rows->items[n++] = rows->items[i];
    rows->n = n > group + 1 ? n : group;
}

static void add_children(const struct build *build, size_t group)
{
    struct top_rows *rows = build->rows;
    const json_t *status = json_object_get(build->source->status, rows->items[group].address);
    const json_t *cells = json_object_get(status, "cells");

    if (status && cells && rows->items[group].open)
        add_cells(build, cells, group);
    else if (status && rows->items[group].open)
        add_workers(build, json_object_get(status, "workers"), group);
    apply_filter(build, group);
}

void top_rows_build(struct top_rows *rows, struct top_source *source,
                    struct top_processes *processes, const struct top_choice *choice)
{
    struct build build = {.rows = rows,
                          .source = source,
                          .processes = processes,
                          .choice = choice,
                          .now = clock_realtime()};
    const json_t *groups = json_object_get(source->metrics, "groups");
    struct top_rows sorted = {0};
    size_t at = 0;

    rows->n = 0;
    build.rows = &sorted;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        struct top_row *row = add_row(&sorted, TOP_GROUP, group);

        build.group = field_text(group, "name");
        if (row)
            fill_group(&build, row, group, find_before(source, build.group, &at));
    }
    sort_from(&build, 0);
    build.rows = rows;
    for (size_t i = 0; i < sorted.n; i++) {
        struct top_row *row = add_row(rows, TOP_GROUP, sorted.items[i].object);

        if (!row)
            break;
        *row = sorted.items[i];
        build.group = row->group;
        add_children(&build, rows->n - 1);
    }
    top_rows_deinit(&sorted);
}
