/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A table whose columns are as wide as their contents, two spaces apart. The last column gets the
 * remaining width.
 */

#include "shared/base/clock.h"
#include "supervisor/ctl/text/terminal.h"
#include <jansson.h>
#include <stddef.h>

#define TABLE_COLUMNS_MAX 10

struct table {
    const char *indent; /* borrowed; before each row */
    size_t n_columns;
    bool right[TABLE_COLUMNS_MAX]; /* aligned to the right */
    char **cells;                  /* owned */
    size_t n_cells, allocated;
    char **notes; /* owned; per row, or NULL */
    size_t n_notes;
    int error;  /* sticky: 0 or -ENOMEM */
    usec_t now; /* the wall clock, for cells that show an age; 0 unless the caller sets it */
};

/* clang-format off */
#define TABLE_NULL {0}
/* clang-format on */

void table_init(struct table *table, size_t n_columns, const char *indent);
void table_deinit(struct table *table);

/* Adds the next cell, row by row. The text may contain marks. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a line below the last complete row. One per row. */
void table_note(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

void table_print(const struct table *table, const struct terminal *terminal);

/* ---- tables described by data ---- */

struct list_column {
    const char *title;
    const char *member;
    /* Adds the cell of one item. */
    void (*add)(struct table *table, const json_t *item, const char *member);
    bool right; /* aligned to the right */
};

/*
 * `columns` ends with an empty one. There are no titles if the first column has none. `now` is the
 * wall clock.
 */
void list_print(const struct terminal *terminal, const char *indent,
                const struct list_column *columns, const json_t *items, usec_t now);

/* Ways to add the member: "" if it is absent. */
void list_text(struct table *table, const json_t *item, const char *member);
void list_number(struct table *table, const json_t *item, const char *member);
void list_span(struct table *table, const json_t *item, const char *member);
/* As a number with commas, 0 if it is absent. */
void list_count(struct table *table, const json_t *item, const char *member);
/* As a time in the past ("3s ago"), or in the future ("3s"). */
void list_ago(struct table *table, const json_t *item, const char *member);
void list_in(struct table *table, const json_t *item, const char *member);
