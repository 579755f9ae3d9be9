/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/list.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include <string.h>

static char *title_text(const char *title)
{
    char *text;

    return *title && asprintf(&text, BOLD "%s" PLAIN, title) >= 0 ? text : strdup("");
}

/* Returns the cells row by row, which the caller frees; NULL when out of memory. */
static char **make_cells(const struct list_column *columns, size_t n_columns, const json_t *items,
                         usec_t now)
{
    const size_t n_titles = columns[0].title ? n_columns : 0;
    const size_t n_cells = n_titles + json_array_size(items) * n_columns;
    char **cells = calloc(n_cells + 1, sizeof(*cells));

    for (size_t i = 0; cells && i < n_cells; i++) {
        const struct list_column *column = &columns[i % n_columns];
        const json_t *item = json_array_get(items, (i - n_titles) / n_columns);

        cells[i] =
            i < n_titles ? title_text(column->title) : pattern_text(column->pattern, item, now);
        if (!cells[i])
            cells[i] = strdup("");
    }
    return cells;
}

static void add_blanks(struct buffer *row, size_t n)
{
    while (n-- > 0)
        buffer_add_char(row, ' ');
}

static void print_row(const struct terminal *terminal, const char *indent,
                      const struct list_column *columns, char *const *cells, size_t n,
                      const unsigned *widths)
{
    struct buffer row = BUFFER_NULL;
    _cleanup_free_ char *text = NULL;

    buffer_add_string(&row, indent);
    for (size_t i = 0; i < n; i++) {
        const size_t padding = widths[i] - terminal_text_width(cells[i]);
        const bool right = columns[i].place == LIST_RIGHT;

        add_blanks(&row, right ? padding : 0);
        buffer_add_string(&row, cells[i]);
        add_blanks(&row, (right ? 0 : padding) + (widths[i] > 0 ? 2 : 0));
    }
    while (row.size > 0 && row.bytes[row.size - 1] == ' ')
        row.size--;
    text = buffer_take(&row, NULL);
    if (text)
        terminal_print(terminal, "%s", text);
}

void list_print(const struct terminal *terminal, const char *indent,
                const struct list_column *columns, const json_t *items, usec_t now)
{
    unsigned widths[LIST_COLUMNS_MAX] = {0};
    size_t n = 0, n_shown;
    char **cells;

    while (columns[n].pattern)
        n++;
    n_shown = n - (columns[n - 1].place == LIST_NOTE);
    cells = make_cells(columns, n, items, now);
    for (size_t i = 0; cells && cells[i]; i++)
        if (terminal_text_width(cells[i]) > widths[i % n])
            widths[i % n] = terminal_text_width(cells[i]);
    for (char **row = cells; row && *row; row += n) {
        print_row(terminal, indent, columns, row, n_shown, widths);
        if (n_shown < n && *row[n_shown])
            terminal_print(terminal, "%s", row[n_shown]);
    }
    for (size_t i = 0; cells && cells[i]; i++)
        free(cells[i]);
    free(cells);
}
