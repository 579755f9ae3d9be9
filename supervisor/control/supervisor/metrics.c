/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetMetrics: numbers for monitoring, from counters that are kept anyway. The
 * time for a group does not depend on the number of its cells or jobs. For live views, one call
 * also has the status of what they show, and new deaths. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/supervisor/metrics-report.h"
#include "supervisor/control/supervisor/status-walk.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/varlink/request-parts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP_CELLS 20
/* New deaths in an answer. */
#define DEATHS_MAX 50

struct top_cell {
    uint64_t n_queued;
    char group[CONFIG_GROUP_NAME_MAX + 1];
    char key[PROTOCOL_NAME_MAX + 1];
};

enum metrics_stage {
    METRICS_GROUPS,
    METRICS_STATUS,
    METRICS_DEATHS,
};

struct metrics {
    struct request_parts parts;
    enum metrics_stage stage;
    char name[CONFIG_GROUP_NAME_MAX + 1]; /* of the group that was written last */
    size_t n_top;
    struct top_cell top[TOP_CELLS]; /* those with most queued jobs so far, in that order */
    size_t n_selected;              /* elements of `status` so far */
    struct status_walk status;      /* of the last of them, until all is written */
    bool walks;
    struct list_cursor death; /* the next one */
    size_t n_deaths;          /* written so far */
};

struct metrics_parameters {
    json_t *status;
    struct varlink_int deaths_after;
};

#define metrics_of(parts) list_entry(parts, struct metrics, parts)

/* Puts the cell in its place. Returns false if it has none. */
static bool note_top(struct metrics *metrics, const struct cell *cell)
{
    const uint64_t n_queued = job_counts_queued(&cell->counts);
    size_t at = metrics->n_top;

    while (at > 0 && metrics->top[at - 1].n_queued < n_queued)
        at--;
    if (n_queued == 0 || at == TOP_CELLS)
        return false;
    if (metrics->n_top < TOP_CELLS)
        metrics->n_top++;
    memmove(&metrics->top[at + 1], &metrics->top[at],
            (metrics->n_top - at - 1) * sizeof(metrics->top[0]));
    metrics->top[at].n_queued = n_queued;
    (void)snprintf(metrics->top[at].group, sizeof(metrics->top[at].group), "%s", metrics->name);
    (void)snprintf(metrics->top[at].key, sizeof(metrics->top[at].key), "%s", cell->key);
    return true;
}

static void note_top_of(struct metrics *metrics, const struct group *group)
{
    struct cell *cells[TOP_CELLS];
    const size_t n = cell_table_longest(&group->cells, cells, TOP_CELLS);

    for (size_t i = 0; i < n && note_top(metrics, cells[i]); i++)
        ;
}

static usec_t oldest_of(const struct group *group)
{
    return group->cell ? queue_oldest(&group->cell->queue) : cell_table_oldest(&group->cells);
}

static const struct metrics_parameters *parameters_of(const struct metrics *metrics)
{
    return metrics->parts.request->parameters;
}

/* ---- groups ---- */

/* Writes the next group. Returns whether there was one. */
static bool write_group(struct metrics *metrics)
{
    const struct control_context *context = metrics->parts.request->context;
    const struct group *group = registry_after(context->registry, metrics->name);

    if (!group)
        return false;
    (void)snprintf(metrics->name, sizeof(metrics->name), "%s", group->name);
    note_top_of(metrics, group);
    metrics_report_group(request_part_reply(&metrics->parts), context, group, oldest_of(group));
    return true;
}

/* ---- status ---- */

struct selection {
    const char *target;
    json_t *only;
};

static const struct varlink_parameter selection_table[] = {
    VARLINK_ROW("target", STRING, selection, target),
    VARLINK_ROW("only", LIST, selection, only),
    {0},
};

/* Begins with the next element of `status` that names something. Returns 0, -ENOENT if there is
 * none, or -ENOMEM. */
static int next_selection(struct metrics *metrics)
{
    json_t *all = parameters_of(metrics)->status;
    const struct registry *registry = metrics->parts.request->context->registry;

    while (metrics->n_selected < json_array_size(all)) {
        json_t *element = json_array_get(all, metrics->n_selected++);
        struct selection selection = {0};
        struct registry_target target;
        const char *bad;

        (void)varlink_take(element, selection_table, &selection, &bad); /* checked before */
        if (selection.target && registry_resolve(registry, selection.target, &target) < 0)
            continue;
        if (selection.only && target.slot)
            continue; /* nothing is below a worker */
        metrics->walks = true;
        return status_walk_init(&metrics->status, &metrics->parts,
                                selection.target ? &target : NULL, selection.only, true);
    }
    return -ENOENT;
}

static void end_selection(struct metrics *metrics)
{
    if (metrics->walks)
        status_walk_deinit(&metrics->status);
    metrics->walks = false;
}

/* Goes on with the status. Returns whether there may be more. */
static bool write_status(struct metrics *metrics)
{
    if (!metrics->walks && next_selection(metrics) < 0)
        return false;
    if (status_walk_write(&metrics->status))
        end_selection(metrics);
    return true;
}

static void pause_metrics(struct request_parts *parts)
{
    if (metrics_of(parts)->walks)
        status_walk_pause(&metrics_of(parts)->status);
}

static void resume_metrics(struct request_parts *parts)
{
    if (metrics_of(parts)->walks)
        status_walk_resume(&metrics_of(parts)->status);
}

/* ---- deaths ---- */

/* Writes the next one. Returns whether there was one. */
static bool write_death(struct metrics *metrics)
{
    const struct death_log *log = metrics->parts.request->context->deaths;
    const uint64_t after = (uint64_t)parameters_of(metrics)->deaths_after.value;
    const struct death *death;

    if (!metrics->death.at || metrics->death.at == &log->deaths || metrics->n_deaths == DEATHS_MAX)
        return false;
    death = list_entry(metrics->death.at, struct death, link);
    if (death->serial <= after)
        return false;
    report_death(request_part_reply(&metrics->parts), NULL, metrics->parts.request, death);
    list_cursor_advance(&metrics->death);
    metrics->n_deaths++;
    return true;
}

/* ---- all of it ---- */

/* Begins with what else was asked for. Returns whether there is anything. */
static bool next_stage(struct metrics *metrics)
{
    const struct metrics_parameters *given = parameters_of(metrics);
    struct death_log *log = metrics->parts.request->context->deaths;

    if (metrics->stage < METRICS_STATUS && given->status) {
        metrics->stage = METRICS_STATUS;
        request_part_next_array(&metrics->parts, "status");
        return true;
    }
    if (metrics->stage < METRICS_DEATHS && given->deaths_after.set) {
        metrics->stage = METRICS_DEATHS;
        request_part_next_array(&metrics->parts, "deaths");
        list_cursor_begin(&metrics->death, &log->cursors, &log->deaths, false);
        return true;
    }
    return false;
}

/* Returns false at the end of the stage. */
static bool write_some(struct metrics *metrics)
{
    switch (metrics->stage) {
    case METRICS_GROUPS:
        return write_group(metrics);
    case METRICS_STATUS:
        return write_status(metrics);
    default:
        return write_death(metrics);
    }
}

static bool write_metrics(struct request_parts *parts)
{
    struct metrics *metrics = metrics_of(parts);

    do {
        if (!write_some(metrics) && !next_stage(metrics))
            return true;
    } while (!request_part_full(parts, 1));
    return false;
}

static void finish_metrics(struct request_parts *parts)
{
    const struct metrics *metrics = metrics_of(parts);
    struct reply *reply = request_part_reply(parts);

    reply_array(reply, "top_cells");
    for (size_t i = 0; i < metrics->n_top; i++) {
        reply_object(reply, NULL);
        reply_string(reply, "group", metrics->top[i].group);
        reply_string(reply, "key", metrics->top[i].key);
        reply_uint(reply, "queued", metrics->top[i].n_queued);
        reply_end_object(reply);
    }
    reply_end_array(reply);
    metrics_report_rest(reply, parts->request->context, parts->request->control);
    reply_uint(reply, "deaths_total", parts->request->context->deaths->n_total);
}

static void free_metrics(struct request_parts *parts)
{
    struct metrics *metrics = metrics_of(parts);

    end_selection(metrics);
    list_cursor_end(&metrics->death);
    free(metrics);
}

/* Whether the elements of `status` are what they have to be; if not, it has been answered. */
static bool check_selections(struct request *request, json_t *all)
{
    for (size_t i = 0; i < json_array_size(all); i++) {
        struct selection selection = {0};

        if (!request_take(request, json_array_get(all, i), selection_table, &selection))
            return false;
        if (selection.only && !selection.target)
            return request_refuse(request, "only", "with a target");
    }
    return true;
}

static void get_metrics(struct request *request)
{
    const struct metrics_parameters *given = request->parameters;
    struct metrics *metrics;

    if (!check_selections(request, given->status))
        return;
    metrics = request_allocate(request, sizeof(*metrics));
    if (!metrics)
        return;
    list_init(&metrics->death.link);
    metrics->parts = (struct request_parts){
        .array = "groups",
        .may_continue = true,
        .write = write_metrics,
        .pause = pause_metrics,
        .resume = resume_metrics,
        .finish = finish_metrics,
        .free = free_metrics,
    };
    request_in_parts(request, &metrics->parts);
}

static const struct varlink_parameter metrics_table[] = {
    VARLINK_ROW("status", OBJECTS, metrics_parameters, status),
    VARLINK_ROW("deaths_after", INT, metrics_parameters, deaths_after, .allowed = "0 or more"),
    {0},
};

const struct request_method control_metrics_methods[] = {
    {"GetMetrics", get_metrics, metrics_table, .changes = false, .always = true},
    {0},
};
