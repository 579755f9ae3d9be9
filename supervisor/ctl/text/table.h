/* SPDX-License-Identifier: MIT */
#pragma once

/* Columns as wide as what is in them, two spaces apart. The last one gets what is left of the
 * width. */

#include "supervisor/ctl/text/terminal.h"
#include <stddef.h>

#define TABLE_COLUMNS_MAX 8

struct table {
    const char *indent; /* borrowed; before each row */
    size_t n_columns;
    bool right[TABLE_COLUMNS_MAX]; /* aligned to the right */
    char **cells;                  /* owned */
    size_t n_cells, allocated;
    char **notes; /* owned; per row, or NULL */
    size_t n_notes;
    int error; /* sticky: 0 or -ENOMEM */
};

/* clang-format off */
#define TABLE_NULL {0}
/* clang-format on */

void table_init(struct table *table, size_t n_columns, const char *indent);
void table_deinit(struct table *table);

/* The next cell, row by row; may carry marks. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line of its own below the last complete row. One per row. */
void table_note(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

void table_print(const struct table *table, const struct terminal *terminal);
