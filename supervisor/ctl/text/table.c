/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/text/table.h"

#include "shared/base/cleanup.h"
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
