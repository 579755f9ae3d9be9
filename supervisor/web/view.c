/* SPDX-License-Identifier: MIT */
/* Makes replies small enough for a browser that asks every second. */
#include "supervisor/web/route.h"

#include "shared/base/cleanup.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The part of the workers, or of the cells, that is kept; the counts include all. */
struct slice {
    size_t offset, limit;
};

/* A shallow copy without some members. The list ends with NULL. */
static json_t *copy_without(json_t *object, const char *const *names)
{
    json_t *copy = json_copy(object);

    for (; copy && *names; names++)
        json_object_del(copy, *names);
    return copy;
}

static json_t *light_death(json_t *death)
{
    static const char *const heavy[] = {"state", "stderr", "messages", NULL};

    return copy_without(death, heavy);
}

/* Sets a member, and takes ownership of object and value. Returns the object; NULL = out of memory.
 */
static json_t *with(json_t *object, const char *name, json_t *value)
{
    if (object && json_object_set_new(object, name, value) == 0)
        return object;
    if (!object)
        json_decref(value);
    json_decref(object);
    return NULL;
}

/* Returns the copy with a light death in the member of that name. */
static json_t *with_light_death(json_t *copy, const char *name)
{
    json_t *death = json_object_get(copy, name);

    return death ? with(copy, name, light_death(death)) : copy;
}

static json_t *light_worker(json_t *worker)
{
    static const char *const heavy[] = {"published", NULL};

    return with_light_death(copy_without(worker, heavy), "last_death");
}

/* Adds to an object that maps the names of states to numbers of workers. */
static void count_states(json_t *counts, const json_t *workers)
{
    json_t *worker;
    size_t i;

    json_array_foreach(workers, i, worker)
    {
        const char *state = json_string_value(json_object_get(worker, "state"));
        json_int_t n = json_integer_value(json_object_get(counts, state ? state : ""));

        if (state)
            json_object_set_new(counts, state, json_integer(n + 1));
    }
}

typedef json_t *(*light_fn)(json_t *item);

static json_t *slice_of(const json_t *array, struct slice slice, light_fn light)
{
    json_t *kept = json_array();

    for (size_t i = slice.offset; i < json_array_size(array) && i - slice.offset < slice.limit; i++)
        if (json_array_append_new(kept, light(json_array_get(array, i))) < 0) {
            json_decref(kept);
            return NULL;
        }
    return kept;
}

/* A group or a cell, counted, without its workers and cells. */
static json_t *summary_of(json_t *group)
{
    static const char *const heavy[] = {"workers", "cells", NULL};
    const json_t *workers = json_object_get(group, "workers");
    json_t *counts = json_object(), *cell;
    size_t total = json_array_size(workers), i;

    count_states(counts, workers);
    json_array_foreach(json_object_get(group, "cells"), i, cell)
    {
        count_states(counts, json_object_get(cell, "workers"));
        total += json_array_size(json_object_get(cell, "workers"));
    }
    return with(with(copy_without(group, heavy), "workers_by_state", counts), "workers_total",
                json_integer((json_int_t)total));
}

/* A group or a cell with a page of its workers; a single one keeps everything. */
static json_t *with_workers(json_t *group, struct slice slice)
{
    const json_t *workers = json_object_get(group, "workers");
    light_fn light = json_array_size(workers) == 1 ? json_copy : light_worker;

    return with(summary_of(group), "workers", slice_of(workers, slice, light));
}

static json_t *detail_of(json_t *group, struct slice slice)
{
    json_t *cells = json_object_get(group, "cells");

    if (!cells)
        return with_workers(group, slice);
    return with(summary_of(group), "cells",
                json_array_size(cells) == 1
                    ? json_pack("[o]", with_workers(json_array_get(cells, 0), slice))
                    : slice_of(cells, slice, summary_of));
}

json_t *view_status(json_t *reply, const json_t *local)
{
    json_t *groups = json_array(), *group;
    const json_t *limit = json_object_get(local, "limit");
    const struct slice slice = {
        .offset = (size_t)json_integer_value(json_object_get(local, "offset")),
        .limit = (size_t)json_integer_value(limit),
    };
    size_t i;

    json_array_foreach(json_object_get(reply, "groups"), i,
                       group) if (json_array_append_new(groups, limit ? detail_of(group, slice)
                                                                      : summary_of(group)) < 0)
    {
        json_decref(groups);
        return NULL;
    }
    return json_pack("{s:O?, s:o}", "at", json_object_get(local, "at"), "groups", groups);
}

json_t *view_event(json_t *event)
{
    return with_light_death(json_copy(event), "death");
}

json_t *view_events(json_t *reply, const json_t *local)
{
    const struct slice all = {.limit = SIZE_MAX};

    (void)local;
    return with(json_copy(reply), "events",
                slice_of(json_object_get(reply, "events"), all, view_event));
}
