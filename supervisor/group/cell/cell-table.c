/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-table.h"

#include "shared/base/hash.h"
#include "supervisor/group/cell/cell.h"
#include <string.h>

void cell_table_init(struct cell_table *table)
{
    *table = (struct cell_table){0};
    list_init(&table->cells);
    list_init(&table->cursors);
    list_init(&table->live);
}

void cell_table_deinit(struct cell_table *table)
{
    list_cursors_end(&table->cursors);
    index_deinit(&table->by_key);
}

struct cell *cell_table_find(const struct cell_table *table, const char *key, size_t size)
{
    index_for_each_entry (cell, &table->by_key, hash_bytes(key, size), struct cell, by_key)
        if (strncmp(cell->key, key, size) == 0 && cell->key[size] == '\0')
            return cell;
    return NULL;
}

void cell_table_add(struct cell_table *table, struct cell *cell)
{
    index_add(&table->by_key, &cell->by_key, hash_bytes(cell->key, strlen(cell->key)));
    list_push_back(&table->cells, &cell->link);
    table->n_cells++;
    cell_table_note_pause(table, false, cell->pause != CELL_RUNS);
}

void cell_table_note_idle(struct cell *cell)
{
    list_unlink(&cell->live_link);
}

/* ---- by their queues ---- */

void cell_table_note_queue(struct cell_table *table, struct cell *cell)
{
    const usec_t oldest = queue_oldest(&cell->queue);

    if (oldest == 0)
        heap_remove(&table->by_age, &cell->by_age);
    else if (!heap_has(&cell->by_age) || cell->by_age.key != oldest)
        heap_set(&table->by_age, &cell->by_age, oldest);
}

usec_t cell_table_oldest(const struct cell_table *table)
{
    const struct heap_node *first = heap_first(&table->by_age);

    return first ? first->key : 0;
}

struct cell *cell_table_at(const struct cell_table *table, const struct list_cursor *cursor)
{
    const bool any = cursor->at && cursor->at != &table->cells;

    return any ? list_entry(cursor->at, struct cell, link) : NULL;
}

void cell_table_remove(struct cell_table *table, struct cell *cell)
{
    list_cursors_pass(&table->cursors, &cell->link);
    cell_table_note_idle(cell);
    heap_remove(&table->by_age, &cell->by_age);
    index_remove(&table->by_key, &cell->by_key);
    list_unlink(&cell->link);
    table->n_cells--;
    cell_table_note_pause(table, cell->pause != CELL_RUNS, false);
}
