/* SPDX-License-Identifier: MIT */
#pragma once

/* The cells of a group by their keys, in a hash table, and those with a queue by their oldest job.
 */

#include "shared/base/clock.h"
#include "shared/base/heap.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <stddef.h>

struct cell;

struct cell_table {
    struct list cells;   /* struct cell.link, in the order of their creation */
    struct list cursors; /* struct list_cursor.link, in `cells` */
    size_t n_cells;
    struct list live;    /* struct cell.live_link: cells with live jobs */
    size_t n_paused;     /* cells */
    struct index by_key; /* struct cell.by_key */
    struct heap by_age;  /* struct cell.by_age: with Cells=by-key, cells that have queued jobs */
};

void cell_table_init(struct cell_table *table);
void cell_table_deinit(struct cell_table *table); /* the table must be empty */

/* Returns NULL if there is none. `key` need not be terminated. */
struct cell *cell_table_find(const struct cell_table *table, const char *key, size_t size);

/* The key must not be in the table yet. */
void cell_table_add(struct cell_table *table, struct cell *cell);
void cell_table_remove(struct cell_table *table, struct cell *cell);

/* One of its cells is paused, or resumed. */
static inline void cell_table_note_pause(struct cell_table *table, bool before, bool after)
{
    table->n_paused += (size_t)after - (size_t)before;
}

/* The cell has no live job any more. Idempotent. */
void cell_table_note_idle(struct cell *cell);

/* Called after changes of the cell's queue. */
void cell_table_note_queue(struct cell_table *table, struct cell *cell);
/* When the oldest queued job of these cells was created (realtime); 0 = none is queued. */
usec_t cell_table_oldest(const struct cell_table *table);

/* Returns the cell at a cursor in `cells`, for a walk of several turns. NULL = no more. */
struct cell *cell_table_at(const struct cell_table *table, const struct list_cursor *cursor);
