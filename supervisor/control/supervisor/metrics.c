/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetMetrics: numbers for monitoring, from counters that are kept anyway. Only
 * the oldest jobs and the cells with most jobs are looked for, among the cells that have any, some
 * in each turn of the loop: about 60 us for 1000 cells. An index of them would have to be changed
 * with almost every job, which is far more often than somebody asks. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/supervisor/metrics-report.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/varlink/request-parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP_CELLS 20

struct top_cell {
    uint64_t n_queued;
    char group[CONFIG_GROUP_NAME_MAX + 1];
    char key[PROTOCOL_NAME_MAX + 1];
};

struct metrics {
    struct request_parts parts;
    uint64_t group; /* the reference of the one whose cells are being looked at; 0 = none */
    char name[CONFIG_GROUP_NAME_MAX + 1]; /* of that group, or of the one written last */
    struct list_cursor cells;             /* among those of the group that have live jobs */
    usec_t oldest;                        /* queued job of the cells so far; 0 = none */
    size_t n_top;
    struct top_cell top[TOP_CELLS]; /* those with most queued jobs so far, in that order */
};

#define metrics_of(parts) list_entry(parts, struct metrics, parts)

static void note_oldest(struct metrics *metrics, const struct cell *cell)
{
    const usec_t oldest = queue_oldest(&cell->queue);

    if (oldest != 0 && (metrics->oldest == 0 || oldest < metrics->oldest))
        metrics->oldest = oldest;
}

/* Puts the cell in its place, if it has one. */
static void note_top(struct metrics *metrics, const struct cell *cell)
{
    const uint64_t n_queued = job_counts_queued(&cell->counts);
    size_t at = metrics->n_top;

    while (at > 0 && metrics->top[at - 1].n_queued < n_queued)
        at--;
    if (n_queued == 0 || at == TOP_CELLS)
        return;
    if (metrics->n_top < TOP_CELLS)
        metrics->n_top++;
    memmove(&metrics->top[at + 1], &metrics->top[at],
            (metrics->n_top - at - 1) * sizeof(metrics->top[0]));
    metrics->top[at].n_queued = n_queued;
    (void)snprintf(metrics->top[at].group, sizeof(metrics->top[at].group), "%s", metrics->name);
    (void)snprintf(metrics->top[at].key, sizeof(metrics->top[at].key), "%s", cell->key);
}

/* Begins with the next group. Returns false if there is none. */
static bool begin_group(struct metrics *metrics)
{
    struct group *group = registry_after(metrics->parts.request->context->registry, metrics->name);

    if (!group)
        return false;
    metrics->group = group->reference;
    (void)snprintf(metrics->name, sizeof(metrics->name), "%s", group->name);
    metrics->oldest = 0;
    list_cursor_begin(&metrics->cells, &group->cells.cursors, &group->cells.live, false);
    return true;
}

static void end_group(struct metrics *metrics, const struct group *group)
{
    list_cursor_end(&metrics->cells);
    metrics->group = 0;
    if (group)
        metrics_report_group(request_part_reply(&metrics->parts), metrics->parts.request->context,
                             group, metrics->oldest);
}

static void look_at_cell(struct metrics *metrics, const struct group *group)
{
    const struct cell *cell = list_entry(metrics->cells.at, struct cell, live_link);

    note_oldest(metrics, cell);
    if (group_is_keyed(group))
        note_top(metrics, cell);
    list_cursor_advance(&metrics->cells);
}

/* A group is written once its cells have been looked at, so that it is never in two replies. */
static bool write_metrics(struct request_parts *parts)
{
    struct metrics *metrics = metrics_of(parts);

    do {
        struct registry *registry = parts->request->context->registry;
        const struct group *group = registry_get(registry, metrics->group);

        if (metrics->group == 0) {
            if (!begin_group(metrics))
                return true;
        } else if (!group || !metrics->cells.at || metrics->cells.at == &group->cells.live) {
            end_group(metrics, group);
        } else {
            look_at_cell(metrics, group);
        }
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
}

static void free_metrics(struct request_parts *parts)
{
    list_cursor_end(&metrics_of(parts)->cells);
    free(metrics_of(parts));
}

static void get_metrics(struct request *request)
{
    struct metrics *metrics = request_allocate(request, sizeof(*metrics));

    if (!metrics)
        return;
    metrics->parts = (struct request_parts){
        .array = "groups",
        .may_continue = true,
        .write = write_metrics,
        .finish = finish_metrics,
        .free = free_metrics,
    };
    list_init(&metrics->cells.link);
    request_in_parts(request, &metrics->parts);
}

const struct request_method control_metrics_methods[] = {
    {"GetMetrics", get_metrics, .changes = false, .always = true},
    {0},
};
