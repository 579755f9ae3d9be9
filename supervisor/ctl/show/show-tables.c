/* SPDX-License-Identifier: MIT */

/* Shows all groups, and the cells of a group, as tables. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/pool-view.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"
#include <string.h>

/* How many healthy cells with work are shown without --all. Cells in trouble are always shown. */
#define BUSY_SHOWN 10

static bool is_in_trouble(const json_t *cell)
{
    return field_is(cell, "state", "degraded") || field_is(cell, "state", "failing") ||
           field_is(cell, "state", "failed");
}

static bool has_work(const json_t *cell)
{
    return field_count(cell, "queued") + field_count(cell, "running") +
               field_count(cell, "waiting") >
           0;
}

static void add_key(struct table *table, const json_t *cell, const char *member)
{
    table_add(table, "%s %s", DOT(field_text(cell, "state")), SAFE(field_text(cell, member)));
}

static void add_state(struct table *table, const json_t *group, const char *member)
{
    (void)member;
    table_add(table, "%s", STATE(show_group_state(group)));
}

static void add_cell_up(struct table *table, const json_t *cell, const char *member)
{
    table_add(table, "%s/%s up", COUNT(field_count(cell, member)),
              COUNT(field_count(cell, "size")));
}

static void add_count(struct table *table, const json_t *cell, const char *member)
{
    table_add(table, "%s %s", COUNT(field_count(cell, member)),
              strcmp(member, "succeeded") == 0 ? "done" : member);
}

/* Adds how long jobs took, how long the oldest waits, and how many workers died. */
static void add_notes(struct table *table, const json_t *cell, const char *member)
{
    const usec_t oldest = field_usec(cell, "oldest_queued_at");
    struct joined notes = JOINED_NULL;

    if (field_has(cell, "p99_usec"))
        joined_add(&notes, "p99 %s", SPAN(field_usec(cell, "p99_usec")));
    if (oldest > 0)
        joined_add(&notes, "oldest waits for %s", SPAN(usec_sub(table->now, oldest)));
    if (field_count(cell, member) > 0)
        joined_add(&notes, "%s died", COUNT(field_count(cell, member)));
    table_add(table, "%s", notes.text);
}

/* Chooses cells in trouble, then some with work; all cells, if these are few. */
static json_t *choose_cells(const json_t *cells, bool all)
{
    json_t *chosen = json_array();
    const json_t *cell;
    size_t i;

    json_array_foreach(cells, i, cell) if (is_in_trouble(cell))
        json_array_append(chosen, (json_t *)(uintptr_t)cell);
    json_array_foreach(cells, i,
                       cell) if (!is_in_trouble(cell) &&
                                 (all || json_array_size(cells) <= BUSY_SHOWN ||
                                  (has_work(cell) && json_array_size(chosen) < BUSY_SHOWN)))
        json_array_append(chosen, (json_t *)(uintptr_t)cell);
    return chosen;
}

void show_cells(const struct terminal *terminal, const json_t *group, usec_t now, bool all)
{
    static const struct list_column columns[] = {
        {NULL, "key", add_key, false},      {NULL, "state", add_state, false},
        {NULL, "up", add_cell_up, true},    {NULL, "queued", add_count, true},
        {NULL, "running", add_count, true}, {NULL, "succeeded", add_count, true},
        {NULL, "deaths", add_notes, false}, {0},
    };
    json_auto_t *shown = choose_cells(json_object_get(group, "cells"), all);
    const uint64_t total = field_count(group, "cells_total"), n_shown = json_array_size(shown);

    terminal_print(terminal, "     Cells: %s", total > 0 ? COUNT(total) : "none yet");
    list_print(terminal, "   ", columns, shown, now);
    if (total > n_shown)
        terminal_print(terminal, "   " DIM "and %s more" PLAIN, COUNT(total - n_shown));
}

/* ---- groups ---- */

static void add_name(struct table *table, const json_t *group, const char *member)
{
    table_add(table, "%s %s",
              DOT(show_has_failing_cells(group) ? "failing" : show_group_state(group)),
              SAFE(field_text(group, member)));
}

static void add_up(struct table *table, const json_t *group, const char *member)
{
    table_add(table, "%s/%s", COUNT(field_count(group, member)), COUNT(field_count(group, "size")));
}

/* A service has no jobs. */
static void add_jobs(struct table *table, const json_t *group, const char *member)
{
    table_add(table, "%s",
              field_is(group, "type", "service") ? "-" : COUNT(field_count(group, member)));
}

/* Adds how its last worker or job died, if the group is in trouble. */
static void add_last(struct joined *why, const json_t *group)
{
    const json_t *unstarted = pool_unstarted(group), *death = pool_latest_death(group);
    const char *reason = field_text(json_object_get(group, "last_dead"), "reason");
    char line[512];

    if (unstarted)
        joined_add(why, "%s", SAFE(field_text(unstarted, "status")));
    else if (death)
        joined_add(why, "%s", SAFE(field_text(death, "detail")));
    else if (*show_last_line(line, sizeof(line), reason))
        joined_add(why, "%s", line);
}

/* Adds why the group is in trouble, or if it is not, its description. */
static void add_why(struct table *table, const json_t *group, const char *member)
{
    struct joined why = JOINED_NULL;

    show_why(&why, group, table->now);
    if (*why.text)
        add_last(&why, group);
    table_add(table, "%s", *why.text ? why.text : SAFE(field_text(group, member)));
}

void show_groups(const struct terminal *terminal, const json_t *groups, usec_t now)
{
    static const struct list_column columns[] = {
        {"GROUP", "name", add_name, false},
        {"STATE", "state", add_state, false},
        {"UP", "up", add_up, true},
        {"RUNNING", "running", add_jobs, true},
        {"QUEUED", "queued", add_jobs, true},
        {"DEAD", "dead", add_jobs, true},
        {"DEATHS", "deaths", list_count, true},
        {"", "description", add_why, false},
        {0},
    };
    json_auto_t *whole = json_array();

    for (size_t i = 0; i < json_array_size(groups); i++)
        json_array_append_new(whole, cells_merge(json_array_get(groups, i)));
    list_print(terminal, "", columns, whole, now);
}
