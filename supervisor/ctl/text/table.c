/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/table.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <inttypes.h>
#include <stdarg.h>

void table_init(struct table *table, size_t n_columns, const char *indent)
{
    *table = (struct table){.n_columns = n_columns, .indent = indent};
}

void table_deinit(struct table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i]);
    free(table->cells);
    for (size_t i = 0; i < table->n_notes; i++)
        free(table->notes[i]);
    free(table->notes);
    *table = (struct table)TABLE_NULL;
}

static int grow(struct table *table)
{
    size_t wanted = table->allocated == 0 ? 64 : table->allocated * 2;
    char **cells;

    if (table->n_cells < table->allocated)
        return 0;
    cells = reallocarray(table->cells, wanted, sizeof(*cells));
    if (!cells)
        return -ENOMEM;
    table->cells = cells;
    table->allocated = wanted;
    return 0;
}

void table_add(struct table *table, const char *format, ...)
{
    va_list arguments;
    char *cell;
    int r;

    if (table->error < 0)
        return;
    table->error = grow(table);
    if (table->error < 0)
        return;
    va_start(arguments, format);
    r = vasprintf(&cell, format, arguments);
    va_end(arguments);
    if (r < 0)
        table->error = -ENOMEM;
    else
        table->cells[table->n_cells++] = cell;
}

void table_note(struct table *table, const char *format, ...)
{
    size_t row = table->n_cells / table->n_columns - 1;
    va_list arguments;
    char **notes;

    if (table->error < 0)
        return;
    notes = reallocarray(table->notes, row + 1, sizeof(*notes));
    if (!notes) {
        table->error = -ENOMEM;
        return;
    }
    table->notes = notes;
    while (table->n_notes <= row)
        notes[table->n_notes++] = NULL;
    va_start(arguments, format);
    if (vasprintf(&notes[row], format, arguments) < 0) {
        notes[row] = NULL;
        table->error = -ENOMEM;
    }
    va_end(arguments);
}

static void measure(const struct table *table, unsigned *widths)
{
    for (size_t i = 0; i < table->n_cells; i++) {
        unsigned width = terminal_text_width(table->cells[i]);

        if (width > widths[i % table->n_columns])
            widths[i % table->n_columns] = width;
    }
}

static void print_row(const struct table *table, const struct terminal *terminal,
                      const unsigned *widths, char *const *cells)
{
    _cleanup_free_ char *row = NULL;
    size_t size;
    FILE *file = open_memstream(&row, &size);

    if (!file)
        return;
    fputs(table->indent, file);
    for (size_t i = 0; i < table->n_columns; i++) {
        int padding = (int)(widths[i] - terminal_text_width(cells[i]));
        bool last = i + 1 == table->n_columns;

        if (table->right[i])
            fprintf(file, "%*s%s", padding, "", cells[i]);
        else
            fprintf(file, "%s%*s", cells[i], last ? 0 : padding, "");
        /* An empty column takes no room. */
        if (!last && widths[i] > 0)
            fputs("  ", file);
    }
    if (fclose(file) != 0)
        return;
    while (size > 0 && row[size - 1] == ' ')
        row[--size] = '\0';
    terminal_print(terminal, "%s", row);
}

void table_print(const struct table *table, const struct terminal *terminal)
{
    unsigned widths[TABLE_COLUMNS_MAX] = {0};

    if (table->n_columns == 0)
        return;
    measure(table, widths);
    for (size_t i = 0; i + table->n_columns <= table->n_cells; i += table->n_columns) {
        size_t row = i / table->n_columns;

        print_row(table, terminal, widths, table->cells + i);
        if (row < table->n_notes && table->notes[row])
            terminal_print(terminal, "%s", table->notes[row]);
    }
}

/* ---- tables described by data ---- */

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
