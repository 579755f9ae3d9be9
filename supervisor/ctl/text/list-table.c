/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/list-table.h"

#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <inttypes.h>

void list_print(const struct terminal *terminal, const char *indent,
                const struct list_column *columns, const json_t *items, usec_t now)
{
    struct table table;
    size_t n = 0;

    while (columns[n].add)
        n++;
    table_init(&table, n, indent);
    table.now = now;
    for (size_t k = 0; k < n; k++) {
        table.right[k] = columns[k].right;
        if (columns[0].title)
            table_add(&table, *columns[k].title ? BOLD "%s" PLAIN : "%s", columns[k].title);
    }
    for (size_t i = 0; i < json_array_size(items); i++)
        for (size_t k = 0; k < n; k++)
            columns[k].add(&table, json_array_get(items, i), columns[k].member);
    table_print(&table, terminal);
    table_deinit(&table);
}

void list_text(struct table *table, const json_t *item, const char *member)
{
    table_add(table, "%s", SAFE(field_text(item, member)));
}

void list_number(struct table *table, const json_t *item, const char *member)
{
    if (field_has(item, member))
        table_add(table, "%" PRId64, field_int(item, member));
    else
        table_add(table, "%s", "");
}

void list_span(struct table *table, const json_t *item, const char *member)
{
    table_add(table, "%s", field_has(item, member) ? SPAN(field_usec(item, member)) : "");
}

void list_count(struct table *table, const json_t *item, const char *member)
{
    table_add(table, "%s", COUNT(field_count(item, member)));
}

void list_ago(struct table *table, const json_t *item, const char *member)
{
    table_add(table, "%s", AGO(table->now, field_usec(item, member)));
}

void list_in(struct table *table, const json_t *item, const char *member)
{
    table_add(table, "%s", SPAN(usec_sub(field_usec(item, member), table->now)));
}
