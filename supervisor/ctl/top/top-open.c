/* SPDX-License-Identifier: MIT */

/*
 * The groups that are open on the screen. All workers, or cells, of a group are asked for when it
 * is opened; then those on the screen, and of the others so many at a time, in turn. So groups of
 * any size cost the supervisor the same, and what is known of the others is a few refreshes old.
 */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/top/top-source.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Workers or cells beside those on the screen that a refresh asks for, of all groups. */
#define TURN 100

#define NAME_MAX_SIZE 128

/* ---- what is known of a group ---- */

static bool has_cells(const json_t *status)
{
    return json_is_array(json_object_get(status, "cells"));
}

/* Its cells, or its workers if it has none. */
static json_t *items_of(const json_t *status)
{
    return json_object_get(status, has_cells(status) ? "cells" : "workers");
}

/* The name that a call knows the item by: several workers may have one slot. */
static const char *name_of(const json_t *item, char buffer[NAME_MAX_SIZE])
{
    if (field_has(item, "key"))
        return field_text(item, "key");
    (void)snprintf(buffer, NAME_MAX_SIZE, "%" PRId64, field_int(item, "slot"));
    return buffer;
}

/* The item's own name. */
static const char *identity_of(const json_t *item)
{
    return field_text(item, field_has(item, "key") ? "key" : "name");
}

/* They are sorted by name. NULL = none. */
static const json_t *metrics_of(const struct top_source *source, const char *group)
{
    const json_t *groups = json_object_get(source->metrics, "groups");
    size_t first = 0, behind = json_array_size(groups);

    while (first < behind) {
        const size_t middle = first + (behind - first) / 2;
        const json_t *metrics = json_array_get(groups, middle);
        const int order = strcmp(field_text(metrics, "name"), group);

        if (order == 0)
            return metrics;
        if (order < 0)
            first = middle + 1;
        else
            behind = middle;
    }
    return NULL;
}

/* How many items there are now. */
static size_t count_now(const json_t *metrics)
{
    const json_t *workers = json_object_get(metrics, "workers");
    int64_t n = 0;
    const char *state;
    json_t *count;

    if (field_has(metrics, "cells"))
        return (size_t)field_count(metrics, "cells");
    json_object_foreach((json_t *)(uintptr_t)workers, state, count) n += json_integer_value(count);
    return (size_t)n;
}

/* What changes when a worker comes, goes, or gets another process. NULL = not known. */
static json_t *take_census(const json_t *metrics)
{
    json_t *workers = json_copy(json_object_get(metrics, "workers"));
    const int64_t up = field_int(workers, "idle") + field_int(workers, "busy");

    (void)json_object_set_new(workers, "idle", json_integer(up));
    (void)json_object_del(workers, "busy");
    return json_pack("{s:o, s:O, s:O}", "workers", workers, "deaths",
                     json_object_get(metrics, "deaths"), "restarts",
                     json_object_get(metrics, "restarts"));
}

/* ---- what has been done between two answers ---- */

static int64_t jobs_done(const json_t *item)
{
    return field_has(item, "jobs_done")
               ? field_int(item, "jobs_done")
               : field_int(item, "succeeded") + field_int(item, "rejected") +
                     field_int(item, "cancelled") + field_int(item, "dead");
}

static void set_rate(json_t *item, const json_t *before)
{
    const usec_t elapsed = usec_sub(field_usec(item, "asked_at"), field_usec(before, "asked_at"));
    const int64_t done = jobs_done(item) - jobs_done(before);

    if (elapsed > 0 && done >= 0)
        (void)json_object_set_new(item, "rate",
                                  json_real((double)done * (double)USEC_PER_SEC / (double)elapsed));
}

/* ---- asking ---- */

/* Returns the items by their own names, stamped; NULL without memory. */
static json_t *take_items(const struct top_source *source, const json_t *items)
{
    json_t *by_name = json_object();

    for (size_t i = 0; i < json_array_size(items); i++) {
        json_t *item = json_array_get(items, i);

        (void)json_object_set_new(item, "asked_at", json_integer((json_int_t)source->at));
        (void)json_object_set(by_name, identity_of(item), item);
    }
    return by_name;
}

/* Notes that all items have been asked for. */
static void begin_round(struct top_source *source, const char *group, json_t *census)
{
    json_t *round = json_pack("{s:o*}", "census", census);

    if (round)
        (void)json_object_set_new(source->rounds, group, round); /* else it is asked for again */
}

/* Puts the whole group, whose metrics were `metrics`, in the place of what was known of it. */
static int take_whole(struct top_source *source, const json_t *metrics, json_t *status)
{
    const char *group = field_text(status, "name");
    json_auto_t *items = take_items(source, items_of(status));
    const json_t *before = items_of(json_object_get(source->status, group));

    for (size_t i = 0; i < json_array_size(before); i++) {
        const json_t *old = json_array_get(before, i);
        json_t *item = json_object_get(items, identity_of(old));

        if (item)
            set_rate(item, old);
    }
    begin_round(source, group, take_census(metrics));
    return json_object_set(source->status, group, status) < 0 ? -ENOMEM : 0;
}

/* Puts the answer to `names` in the place of what was known of them. */
static int merge(struct top_source *source, json_t *known, const json_t *names, const json_t *part)
{
    json_auto_t *items = take_items(source, part);
    char buffer[NAME_MAX_SIZE];
    const char *name;
    json_t *item;

    if (!items)
        return -ENOMEM;
    for (size_t i = json_array_size(known); i-- > 0;) {
        json_t *old = json_array_get(known, i);

        item = json_object_get(items, identity_of(old));
        if (item) {
            set_rate(item, old);
            (void)json_array_set(known, i, item); /* may free `old` */
            (void)json_object_del(items, identity_of(item));
        } else if (json_object_get(names, name_of(old, buffer))) {
            (void)json_array_remove(known, i);
        }
    }
    json_object_foreach(items, name, item) if (json_array_append(known, item) < 0) return -ENOMEM;
    return 0;
}

/* It is the whole group, unless only names of it were wanted. */
static int take_group(struct top_source *source, json_t *group)
{
    const char *name = field_text(group, "name");
    const json_t *names = json_object_get(source->wanted, name);
    const json_t *status = json_object_get(source->status, name);

    if (!names || json_is_null(names))
        return take_whole(source, metrics_of(source, name), group);
    return merge(source, items_of(status), names, items_of(group));
}

int top_source_take_status(struct top_source *source, const json_t *groups)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < json_array_size(groups); i++)
        r = take_group(source, json_array_get(groups, i));
    return r;
}

int top_source_open(struct top_source *source, const char *group)
{
    json_auto_t *reply = NULL;
    int r = top_source_call(source, "GetStatus",
                            json_pack("{s:s, s:b}", "target", group, "brief", 1), &reply);

    return r < 0 ? r : top_source_take_status(source, json_object_get(reply, "groups"));
}

/* ---- in turn ---- */

static void set_number(json_t *round, const char *name, size_t value)
{
    (void)json_object_set_new(round, name, json_integer((json_int_t)value));
}

/* Adds the names of those whose turn it is. */
static void add_next(json_t *round, const json_t *items, size_t turn, json_t *names)
{
    const size_t n = json_array_size(items), count = n < turn ? n : turn;
    const size_t first = (size_t)field_count(round, "next");
    const size_t left = (size_t)field_count(round, "left");
    char buffer[NAME_MAX_SIZE];

    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(items, (first + i) % n);

        (void)json_object_set_new(names, name_of(item, buffer), json_true());
    }
    set_number(round, "next", n > 0 ? (first + count) % n : 0);
    set_number(round, "left", left > count ? left - count : 0);
}

/* All others are asked for in turn once more after a worker has got another process. */
static void follow_census(json_t *round, const json_t *metrics, size_t n)
{
    json_t *census = take_census(metrics);

    if (census && !json_equal(census, json_object_get(round, "census"))) {
        (void)json_object_set(round, "census", census);
        set_number(round, "left", n);
    }
    json_decref(census);
}

/* Whether to ask for all: some are missing, or one too many is known. The larger the group, the
 * more refreshes are between two of these. */
static bool is_whole_due(json_t *round, size_t n, size_t n_now, size_t turn)
{
    const size_t age = (size_t)field_count(round, "age") + 1;

    set_number(round, "age", age);
    return n != n_now && age * turn >= n;
}

/* Returns the names to ask for in a group, null for all of it, or NULL for nothing. */
static json_t *names_to_ask(struct top_source *source, const char *group, json_t *in_view,
                            size_t turn, bool others)
{
    const json_t *metrics = metrics_of(source, group);
    const json_t *items = items_of(json_object_get(source->status, group));
    json_t *round = json_object_get(source->rounds, group);
    const size_t n = json_array_size(items);

    if (!round || is_whole_due(round, n, count_now(metrics), turn))
        return json_null();
    follow_census(round, metrics, n);
    if (others || field_count(round, "left") > 0)
        add_next(round, items, turn, in_view);
    if (json_object_size(in_view) == 0)
        return NULL;
    return json_object_size(in_view) >= n ? json_null() : json_incref(in_view);
}

void top_source_want(struct top_source *source, json_t *in_view, bool others)
{
    const size_t n = json_object_size(in_view), turn = n > 0 && n < TURN ? TURN / n : 1;
    const char *group;
    json_t *names;

    json_object_foreach(in_view, group, names)
    {
        json_t *ask = names_to_ask(source, group, names, turn, others);

        if (ask)
            (void)json_object_set_new(source->wanted, group, ask);
    }
}

void top_source_close_others(struct top_source *source, const json_t *open)
{
    const char *name;
    json_t *status;
    void *next;

    json_object_foreach_safe(source->status, next, name, status)
    {
        if (json_object_get(open, name))
            continue;
        (void)json_object_del(source->rounds, name);
        (void)json_object_del(source->status, name);
    }
}
