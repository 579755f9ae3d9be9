/* SPDX-License-Identifier: MIT */
#include "supervisor/web/route.h"

#include "shared/base/cleanup.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---- views ---- */

/*
 * Makes replies small enough for a browser that asks every second: thousands of workers become
 * counts, or one page of them.
 */

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

/* Lightens the death in the member of that name, if there is one. Returns the copy, or NULL when
 * out of memory. */
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

/* Returns a group or a cell with counts in place of its workers and cells. */
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

/* Returns a group or a cell with counts and a page of its workers. If it has a single worker, that
 * is complete. */
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

/*
 * For GetStatus. In place of its workers and cells, each group gets "workers_total" and
 * "workers_by_state", an object of counts, which include the workers of cells. With "limit" in
 * `local`, the groups keep cells and workers from "offset" on, at most "limit" of each; a group
 * with a single cell in the reply keeps that cell's workers instead. Published states and the last
 * output of dead workers are omitted, unless there is a single worker. "at" of `local` is kept.
 */
static json_t *view_status(json_t *reply, const json_t *local)
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

/* For Watch: omits the output of dead workers, which ListDeaths has. */
static json_t *view_events(json_t *reply, const json_t *local)
{
    const struct slice all = {.limit = SIZE_MAX};

    return with(json_copy(reply), "events",
                slice_of(json_object_get(reply, "events"), all, view_event));
}

/* ---- routes ---- */

#define SUPERVISOR "io.troupe.Supervisor."
#define JOBS       "io.troupe.Jobs."
#define ACTORS     "io.troupe.Actors."
#define SCHEDULES  "io.troupe.Schedules."

#define PARAMETERS(...) ((const struct parameter[]){__VA_ARGS__{.name = NULL}})
/* clang-format off */
#define TEXT(name_)   {.name = (name_), .type = PARAMETER_TEXT},
#define NUMBER(name_) {.name = (name_), .type = PARAMETER_NUMBER},
#define FLAG(name_)   {.name = (name_), .type = PARAMETER_FLAG},
#define LOCAL(name_, type_)  {.name = (name_), .type = (type_), .local = true},
#define IN_FILTER(name_, type_) {.name = (name_), .type = (type_), .object = "filter"},
#define PAGE  NUMBER("cursor") {.name = "limit", .type = PARAMETER_LIMIT},
#define FILTER                                                                                     \
    IN_FILTER("queue", PARAMETER_TEXT) IN_FILTER("reason", PARAMETER_TEXT)                         \
    IN_FILTER("sender", PARAMETER_TEXT) IN_FILTER("recipient", PARAMETER_TEXT)                     \
    IN_FILTER("type", PARAMETER_TEXT) IN_FILTER("job", PARAMETER_TEXT)                             \
    IN_FILTER("since_at", PARAMETER_NUMBER)
#define TARGET TEXT("target")

#define LOOK(path_, method_, view_, parameters_)                                                   \
    {.path = (path_), .method = (method_), .view = (view_), .parameters = PARAMETERS(parameters_)}
#define CHANGE(path_, method_, parameters_)                                                        \
    {.path = (path_), .change = true, .method = (method_), .parameters = PARAMETERS(parameters_)}
/* clang-format on */

static const struct route routes[] = {
    LOOK("/api/info", SUPERVISOR "GetInfo", NULL, ),
    LOOK("/api/status", SUPERVISOR "GetStatus", view_status,
         TEXT("target") LOCAL("offset", PARAMETER_NUMBER) LOCAL("limit", PARAMETER_LIMIT)),
    LOOK("/api/history", SUPERVISOR "GetHistory", NULL, ),
    LOOK("/api/limits", SUPERVISOR "GetLimits", NULL, ),
    LOOK("/api/deaths", SUPERVISOR "ListDeaths", NULL, TEXT("target") PAGE),
    LOOK("/api/death-places", SUPERVISOR "CountDeaths", NULL, TEXT("target")),
    LOOK("/api/past-events", SUPERVISOR "Watch", view_events, TEXT("target") PAGE),
    LOOK("/api/log", SUPERVISOR "GetLog", NULL, TEXT("target") TEXT("job")),
    LOOK("/api/stack", SUPERVISOR "GetStack", NULL, TEXT("target") TEXT("job")),
    LOOK("/api/profile", SUPERVISOR "Profile", NULL, TEXT("target") TEXT("job") NUMBER("for_usec")),
    LOOK("/api/jobs", JOBS "List", NULL, TEXT("group") TEXT("state") FLAG("ended") PAGE),
    LOOK("/api/job", JOBS "Get", NULL, TEXT("id")),
    LOOK("/api/ended-jobs", JOBS "History", NULL,
         TEXT("group") TEXT("key") TEXT("tag") TEXT("state") TEXT("cause") TEXT("text")
             NUMBER("since_at") NUMBER("until_at") PAGE),
    LOOK("/api/dead-letters", ACTORS "ListDeadLetters", NULL, FILTER PAGE),
    LOOK("/api/dead-letter", ACTORS "GetDeadLetter", NULL, NUMBER("id")),
    LOOK("/api/schedules", SCHEDULES "List", NULL, PAGE),
    LOOK("/api/schedule", SCHEDULES "Get", NULL, TEXT("name")),
    CHANGE("/api/send-again", ACTORS "Requeue", NUMBER("id") TEXT("to") FILTER),
    CHANGE("/api/purge", ACTORS "Purge", NUMBER("id") FILTER),
    CHANGE("/api/cancel", JOBS "Cancel", TEXT("id")),
    CHANGE("/api/pause-schedule", SCHEDULES "Pause", TEXT("name")),
    CHANGE("/api/resume-schedule", SCHEDULES "Resume", TEXT("name")),
    CHANGE("/api/run-schedule", SCHEDULES "Run", TEXT("name")),
    CHANGE("/api/start", SUPERVISOR "Start", TARGET),
    CHANGE("/api/stop", SUPERVISOR "Stop", TARGET),
    CHANGE("/api/restart", SUPERVISOR "Restart", TARGET),
    CHANGE("/api/reset", SUPERVISOR "Reset", TARGET),
    CHANGE("/api/pause", SUPERVISOR "Pause", TARGET),
    CHANGE("/api/resume", SUPERVISOR "Resume", TARGET),
    CHANGE("/api/resize", SUPERVISOR "Resize", TARGET NUMBER("size")),
    {.path = "/api/session", .kind = ROUTE_SESSION, .parameters = PARAMETERS()},
    {.path = "/api/events", .kind = ROUTE_EVENTS, .parameters = PARAMETERS()},
    {.path = "/api/job-events", .kind = ROUTE_JOB_EVENTS, .parameters = PARAMETERS()},
    {.path = "/api/job-stream",
     .kind = ROUTE_ITEMS,
     .parameters = PARAMETERS(TEXT("id") NUMBER("after"))},
    {.path = "/metrics",
     .kind = ROUTE_METRICS,
     .method = SUPERVISOR "GetMetrics",
     .parameters = PARAMETERS()},
    {.path = NULL},
};

const struct route *route_find(const char *path)
{
    for (const struct route *route = routes; route->path; route++)
        if (strcmp(route->path, path) == 0)
            return route;
    return NULL;
}
