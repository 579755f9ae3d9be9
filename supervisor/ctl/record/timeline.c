/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/record/timeline.h"

#include "supervisor/ctl/text/field.h"
#include <errno.h>

/* Rows of one worker whose bars overlap. */
#define LANES_MAX 8
#define NAME_SIZE 768

void timeline_init(struct timeline *timeline, FILE *file, usec_t begin)
{
    *timeline = (struct timeline){
        .file = file,
        .begin = begin,
        .processes = json_object(),
        .rows = json_object(),
        .open = json_object(),
        .busy = json_object(),
    };
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file);
}

void timeline_deinit(struct timeline *timeline)
{
    json_decref(timeline->processes);
    json_decref(timeline->rows);
    json_decref(timeline->open);
    json_decref(timeline->busy);
}

/* Takes ownership of the event. */
static void write_event(struct timeline *timeline, json_t *event)
{
    fputs(timeline->n_events++ > 0 ? ",\n" : "\n", timeline->file);
    if (!event || json_dumpf(event, timeline->file, JSON_COMPACT) < 0)
        timeline->failed = true;
    json_decref(event);
}

static json_int_t since_begin(const struct timeline *timeline, usec_t at)
{
    return (json_int_t)usec_sub(at, timeline->begin);
}

/* ---- processes and rows ---- */

/* Names a process or row for the program that shows the file, and gives it its place there. */
static void describe(struct timeline *timeline, const char *kind, json_int_t pid, json_int_t tid,
                     const char *name)
{
    char event[32];

    (void)snprintf(event, sizeof(event), "%s_name", kind);
    write_event(timeline, json_pack("{s:s, s:s, s:I, s:I, s:{s:s}}", "ph", "M", "name", event,
                                    "pid", pid, "tid", tid, "args", "name", name));
    (void)snprintf(event, sizeof(event), "%s_sort_index", kind);
    write_event(timeline,
                json_pack("{s:s, s:s, s:I, s:I, s:{s:I}}", "ph", "M", "name", event, "pid", pid,
                          "tid", tid, "args", "sort_index", tid > 0 ? tid : pid));
}

/* Returns the number that the name has, or gets now; 0 if there is no room. */
static json_int_t number_of(struct timeline *timeline, json_t *numbers, const char *name,
                            bool *ret_new)
{
    json_int_t number = json_integer_value(json_object_get(numbers, name));

    *ret_new = number == 0;
    if (number > 0 || json_object_size(numbers) >= TIMELINE_ROWS_MAX)
        return number;
    number = (json_int_t)json_object_size(numbers) + 1;
    if (json_object_set_new(numbers, name, json_integer(number)) < 0)
        timeline->failed = true;
    return number;
}

static json_int_t process_of(struct timeline *timeline, const char *group)
{
    bool is_new;
    const json_int_t pid = number_of(timeline, timeline->processes, group ? group : "", &is_new);

    if (is_new && pid > 0)
        describe(timeline, "process", pid, 0, group ? group : "(supervisor)");
    return pid;
}

static json_int_t row_of(struct timeline *timeline, json_int_t pid, const char *name)
{
    bool is_new;
    const json_int_t tid = number_of(timeline, timeline->rows, name, &is_new);

    if (is_new && tid > 0)
        describe(timeline, "thread", pid, tid, name);
    return tid;
}

void timeline_add_row(struct timeline *timeline, const struct timeline_place *place)
{
    (void)row_of(timeline, process_of(timeline, place->group), place->worker);
}

/* Writes the name of a row of the worker on which no bar is open. */
static void find_lane(const struct timeline *timeline, const char *worker, char ret[NAME_SIZE])
{
    (void)snprintf(ret, NAME_SIZE, "%s", worker);
    for (int i = 2; i <= LANES_MAX && json_object_get(timeline->busy, ret); i++)
        (void)snprintf(ret, NAME_SIZE, "%s (%d)", worker, i);
}

/* ---- bars ---- */

void timeline_open(struct timeline *timeline, const struct timeline_place *place, const char *key,
                   const char *category, usec_t at, json_t *args)
{
    json_t *bar;
    char row[NAME_SIZE];

    find_lane(timeline, place->worker, row);
    if (json_object_get(timeline->open, key) ||
        json_object_size(timeline->open) >= TIMELINE_ROWS_MAX) {
        timeline->n_left_out += !json_object_get(timeline->open, key);
        json_decref(args);
        return;
    }
    bar = json_pack("{s:s*, s:s, s:s, s:s, s:I, s:o}", "group", place->group, "worker", row, "name",
                    key, "type", category, "at", (json_int_t)at, "args", args);
    if (!bar || json_object_set(timeline->open, key, bar) < 0 ||
        json_object_set(timeline->busy, row, json_object_get(bar, "name")) < 0)
        timeline->failed = true;
    json_decref(bar);
}

/* Writes the part of the bar that follows the beginning of the timeline. */
static void write_bar(struct timeline *timeline, const json_t *bar, usec_t end)
{
    const usec_t at = field_usec(bar, "at"), from = at < timeline->begin ? timeline->begin : at;
    const json_int_t pid = process_of(timeline, json_string_value(json_object_get(bar, "group")));
    json_int_t tid;

    if (end <= timeline->begin && at < timeline->begin)
        return;
    tid = row_of(timeline, pid, field_text(bar, "worker"));
    if (tid == 0) {
        timeline->n_left_out++;
        return;
    }
    if (at < timeline->begin)
        json_object_set_new(json_object_get(bar, "args"), "cut_before_usec",
                            json_integer((json_int_t)usec_sub(timeline->begin, at)));
    write_event(timeline,
                json_pack("{s:s, s:O, s:O, s:I, s:I, s:I, s:I, s:O}", "ph", "X", "name",
                          json_object_get(bar, "name"), "cat", json_object_get(bar, "type"), "pid",
                          pid, "tid", tid, "ts", since_begin(timeline, from), "dur",
                          (json_int_t)usec_sub(end, from), "args", json_object_get(bar, "args")));
    timeline->n_bars++;
}

void timeline_close(struct timeline *timeline, const char *key, usec_t at, json_t *args)
{
    json_t *bar = json_incref(json_object_get(timeline->open, key));

    if (bar) {
        (void)json_object_update_missing(json_object_get(bar, "args"), args);
        write_bar(timeline, bar, at);
        (void)json_object_del(timeline->busy, field_text(bar, "worker"));
        (void)json_object_del(timeline->open, key);
    }
    json_decref(bar);
    json_decref(args);
}

void timeline_cut(struct timeline *timeline, usec_t at, const char *why, const json_t *keep)
{
    const char *key;
    json_t *bar;
    void *next;

    json_object_foreach_safe(timeline->open, next, key, bar)
    {
        if (!json_object_get(keep, key))
            timeline_close(timeline, key, at, json_pack("{s:s}", "cut", why));
    }
}

/* ---- marks and counters ---- */

void timeline_mark(struct timeline *timeline, const struct timeline_place *place, const char *name,
                   const char *category, usec_t at, json_t *args)
{
    const json_int_t pid = process_of(timeline, place->group);
    const json_int_t tid = place->worker ? row_of(timeline, pid, place->worker) : 0;

    if (at < timeline->begin || (place->worker && tid == 0)) {
        timeline->n_left_out += at >= timeline->begin;
        json_decref(args);
        return;
    }
    write_event(timeline, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:o}", "ph", "i", "s",
                                    place->worker  ? "t"
                                    : place->group ? "p"
                                                   : "g",
                                    "name", name, "cat", category, "pid", pid, "tid", tid, "ts",
                                    since_begin(timeline, at), "args", args));
}

void timeline_count(struct timeline *timeline, const char *group, const char *name, usec_t at,
                    json_t *values)
{
    write_event(timeline, json_pack("{s:s, s:s, s:I, s:I, s:I, s:o}", "ph", "C", "name", name,
                                    "pid", process_of(timeline, group), "tid", (json_int_t)0, "ts",
                                    since_begin(timeline, at), "args", values));
}

int timeline_finish(struct timeline *timeline, json_t *about)
{
    fputs("\n],\"otherData\":", timeline->file);
    if (!about || json_dumpf(about, timeline->file, JSON_COMPACT) < 0)
        timeline->failed = true;
    json_decref(about);
    fputs("}\n", timeline->file);
    if (timeline->failed)
        return -ENOMEM;
    return ferror(timeline->file) ? -EIO : 0;
}
