/* SPDX-License-Identifier: MIT */

/* Shows the cells of a group as a table. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many healthy cells with work are shown without --all. Cells in trouble are always shown. */
#define BUSY_SHOWN 10

struct line {
    const json_t *cell;
    bool trouble;
    uint64_t work; /* jobs: queued, running, between attempts */
};

static struct line line_of(const json_t *cell)
{
    return (struct line){
        .cell = cell,
        .trouble = field_is(cell, "state", "degraded") || field_is(cell, "state", "failing") ||
                   field_is(cell, "state", "failed"),
        .work = field_count(cell, "queued") + field_count(cell, "running") +
                field_count(cell, "waiting"),
    };
}

/* Cells in trouble first, then the busiest, then by name. */
static int compare(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (x->trouble != y->trouble)
        return x->trouble ? -1 : 1;
    if (x->work != y->work)
        return x->work > y->work ? -1 : 1;
    return strcmp(field_text(x->cell, "key"), field_text(y->cell, "key"));
}

static uint64_t count_up(const json_t *workers)
{
    uint64_t up = 0;

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);
        up += field_is(worker, "state", "idle") || field_is(worker, "state", "busy");
    }
    return up;
}

/* Adds how long jobs took, how long the oldest waits, and the last death, if any. */
static void add_notes(struct table *table, const json_t *cell, usec_t now)
{
    char notes[4 * FORMAT_SIZE] = "";
    usec_t oldest = field_usec(cell, "oldest_queued_at");
    uint64_t deaths = field_count(cell, "deaths");
    int used = 0;

    if (field_has(cell, "p99_usec"))
        used = snprintf(notes, sizeof(notes), ", p99 %s", SPAN(field_usec(cell, "p99_usec")));
    if (oldest > 0)
        used += snprintf(notes + used, sizeof(notes) - (size_t)used, ", oldest waits for %s",
                         SPAN(usec_sub(now, oldest)));
    if (deaths > 0)
        snprintf(notes + used, sizeof(notes) - (size_t)used, ", %s died", COUNT(deaths));
    table_add(table, "%s", *notes ? notes + 2 : "");
}

static void add_line(struct table *table, const json_t *cell, usec_t now)
{
    const char *state = field_text(cell, "state"), *color = show_state_color(state);

    table_add(table, "%s%s" PLAIN " %s", color, show_state_dot(state),
              SAFE(field_text(cell, "key")));
    table_add(table, "%s%s" PLAIN, color, SAFE(state));
    table_add(table, "%s/%s up", COUNT(count_up(json_object_get(cell, "workers"))),
              COUNT(field_count(cell, "size")));
    table_add(table, "%s queued", COUNT(field_count(cell, "queued")));
    table_add(table, "%s running", COUNT(field_count(cell, "running")));
    table_add(table, "%s done", COUNT(field_count(cell, "succeeded")));
    add_notes(table, cell, now);
}

static size_t count_notable(const struct line *lines, size_t n)
{
    size_t notable = 0;

    while (notable < n &&
           (lines[notable].trouble || (lines[notable].work > 0 && notable < BUSY_SHOWN)))
        notable++;
    /* Do not replace one cell by a line that says "1 more". */
    return n <= BUSY_SHOWN ? n : notable;
}

static void show_table(const struct terminal *terminal, const struct line *lines, size_t n,
                       usec_t now)
{
    struct table table;

    table_init(&table, 7, "   ");
    for (size_t i = 2; i <= 5; i++)
        table.right[i] = true;
    for (size_t i = 0; i < n; i++)
        add_line(&table, lines[i].cell, now);
    table_print(&table, terminal);
    table_deinit(&table);
}

void show_cells(const struct terminal *terminal, const json_t *group, usec_t now, bool all)
{
    const json_t *cells = json_object_get(group, "cells");
    size_t n = json_array_size(cells), shown;
    uint64_t total = field_count(group, "cells_total");
    _cleanup_free_ struct line *lines = calloc(n + 1, sizeof(*lines));

    if (!lines)
        return;
    for (size_t i = 0; i < n; i++)
        lines[i] = line_of(json_array_get(cells, i));
    qsort(lines, n, sizeof(*lines), compare);
    shown = all ? n : count_notable(lines, n);
    terminal_print(terminal, "     Cells: %s", total > 0 ? COUNT(total) : "none yet");
    show_table(terminal, lines, shown, now);
    if (total > shown)
        terminal_print(terminal, "   " DIM "and %s more" PLAIN, COUNT(total - shown));
}
