/* SPDX-License-Identifier: MIT */

/* Shows all groups as a table, one line each. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/cells.h"
#include "supervisor/ctl/show/pool-view.h"
#include "supervisor/ctl/show/show-why.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"

static void add_name(struct table *table, const json_t *group, const char *member)
{
    table_add(table, "%s %s",
              DOT(show_has_failing_cells(group) ? "failing" : show_group_state(group)),
              SAFE(field_text(group, member)));
}

static void add_state(struct table *table, const json_t *group, const char *member)
{
    (void)member;
    table_add(table, "%s", STATE(show_group_state(group)));
}

static void add_up(struct table *table, const json_t *group, const char *member)
{
    const json_t *workers = json_object_get(group, member);
    size_t up = 0;

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        up += pool_is_up(worker) && !pool_is_spare(worker);
    }
    table_add(table, "%zu/%s", up, COUNT(field_count(group, "size")));
}

/* A service has no jobs. */
static void add_jobs(struct table *table, const json_t *group, const char *member)
{
    table_add(table, "%s",
              field_is(group, "type", "service") ? "-" : COUNT(field_count(group, member)));
}

/* Adds how its last worker or job died, if the group is in trouble. */
static void add_last(struct joined *why, const json_t *group, const struct pool_view *pool)
{
    const json_t *death = pool_latest_death(pool);
    const char *reason = field_text(json_object_get(group, "last_dead"), "reason");
    char line[512];

    if (death)
        joined_add(why, "%s", SAFE(field_text(death, "detail")));
    else if (*show_last_line(line, sizeof(line), reason))
        joined_add(why, "%s", line);
}

/* Adds why the group is in trouble, or if it is not, its description. */
static void add_why(struct table *table, const json_t *group, const char *member)
{
    struct joined why = JOINED_NULL;
    struct pool_view pool;

    if (pool_init(&pool, group, table->now) == 0) {
        show_why(&why, group, &pool, table->now);
        if (*why.text)
            add_last(&why, group, &pool);
        pool_deinit(&pool);
    }
    table_add(table, "%s", *why.text ? why.text : SAFE(field_text(group, member)));
}

void show_groups(const struct terminal *terminal, const json_t *groups, usec_t now)
{
    static const struct list_column columns[] = {
        {"GROUP", "name", add_name, false},
        {"STATE", "state", add_state, false},
        {"UP", "workers", add_up, true},
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
