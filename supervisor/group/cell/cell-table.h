/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The cells of a group by their keys. Finding one costs the same among one and among a thousand.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stddef.h>

struct cell;

struct cell_table {
    struct list cells; /* struct cell.link, in the order of their creation */
    size_t n_cells;
    struct index by_key; /* struct cell.by_key */
};

/*
 * A place among the cells, for who looks at some of them in each turn of the loop: it moves on when
 * its cell goes away.
 */
struct cell_cursor {
    struct list link;  /* in the cell */
    struct cell *next; /* NULL = behind the last */
};

void cell_table_init(struct cell_table *table);
void cell_table_deinit(struct cell_table *table); /* empty */

/* NULL if there is none. `key` need not be terminated. */
struct cell *cell_table_find(const struct cell_table *table, const char *key, size_t size);

/* Adds a cell, whose key is not in the table yet. */
void cell_table_add(struct cell_table *table, struct cell *cell);
void cell_table_remove(struct cell_table *table, struct cell *cell);

/* To the first cell, the oldest, and to the one after. To be ended before the table goes. */
void cell_cursor_begin(struct cell_cursor *cursor, const struct cell_table *table);
/* To a cell of a table. */
void cell_cursor_at(struct cell_cursor *cursor, struct cell *cell);
void cell_cursor_advance(struct cell_cursor *cursor, const struct cell_table *table);
void cell_cursor_end(struct cell_cursor *cursor);
