/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetMetrics: numbers for monitoring, from counters that are kept anyway. The
 * time for a group does not depend on the number of its cells or jobs. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/supervisor/metrics-report.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/varlink/request-parts.h"
#include <errno.h>
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
    char name[CONFIG_GROUP_NAME_MAX + 1]; /* of the group that was written last */
    size_t n_top;
    struct top_cell top[TOP_CELLS]; /* those with most queued jobs so far, in that order */
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

/* ---- all of it ---- */

static bool write_metrics(struct request_parts *parts)
{
    struct metrics *metrics = metrics_of(parts);

    do {
        if (!write_group(metrics))
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
}

static void free_metrics(struct request_parts *parts)
{
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
    request_in_parts(request, &metrics->parts);
}

const struct request_method control_metrics_methods[] = {
    {"GetMetrics", get_metrics, .changes = false, .always = true},
    {0},
};
