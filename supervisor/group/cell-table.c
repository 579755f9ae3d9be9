/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell-table.h"

#include "shared/base/cleanup.h"
#include "supervisor/group/cell.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define BUCKETS_MIN 8

static uint64_t hash(const struct cell_table *table, const char *key, size_t size)
{
    return XXH3_64bits_withSeed(key, size, table->seed);
}

static struct cell **bucket_of(const struct cell_table *table, uint64_t value)
{
    return &table->buckets[value & (table->n_buckets - 1)];
}

int cell_table_init(struct cell_table *table)
{
    *table = (struct cell_table){.n_buckets = BUCKETS_MIN};
    list_init(&table->cells);
    if (getrandom(&table->seed, sizeof(table->seed), 0) != (ssize_t)sizeof(table->seed))
        return -errno;
    table->buckets = calloc(table->n_buckets, sizeof(struct cell *));
    return table->buckets ? 0 : -ENOMEM;
}

void cell_table_deinit(struct cell_table *table)
{
    free(TAKE_PTR(table->buckets));
    table->n_buckets = table->n_cells = 0;
}

struct cell *cell_table_find(const struct cell_table *table, const char *key, size_t size)
{
    const uint64_t value = hash(table, key, size);
    struct cell *cell = *bucket_of(table, value);

    while (cell &&
           (cell->hash != value || strncmp(cell->key, key, size) != 0 || cell->key[size] != '\0'))
        cell = cell->next_in_bucket;
    return cell;
}

static void put(struct cell_table *table, struct cell *cell)
{
    struct cell **bucket = bucket_of(table, cell->hash);

    cell->next_in_bucket = *bucket;
    *bucket = cell;
}

/* Chains of one cell on average, at most. */
static int grow(struct cell_table *table)
{
    struct cell **buckets = calloc(table->n_buckets * 2, sizeof(struct cell *));

    if (!buckets)
        return -ENOMEM;
    free(table->buckets);
    table->buckets = buckets;
    table->n_buckets *= 2;
    list_for_each (node, &table->cells)
        put(table, list_entry(node, struct cell, link));
    return 0;
}

int cell_table_add(struct cell_table *table, struct cell *cell)
{
    int r;

    if (table->n_cells == table->n_buckets) {
        r = grow(table);
        if (r < 0)
            return r;
    }
    cell->hash = hash(table, cell->key, strlen(cell->key));
    put(table, cell);
    list_push_back(&table->cells, &cell->link);
    table->n_cells++;
    return 0;
}

static void cell_cursor_set(struct cell_cursor *cursor, const struct cell_table *table,
                            const struct list *node)
{
    list_unlink(&cursor->link);
    cursor->next = node == &table->cells ? NULL : list_entry(node, struct cell, link);
    if (cursor->next)
        list_push_back(&cursor->next->cursors, &cursor->link);
}

void cell_cursor_begin(struct cell_cursor *cursor, const struct cell_table *table)
{
    list_init(&cursor->link);
    cell_cursor_set(cursor, table, table->cells.next);
}

void cell_cursor_at(struct cell_cursor *cursor, struct cell *cell)
{
    list_init(&cursor->link);
    cursor->next = cell;
    list_push_back(&cell->cursors, &cursor->link);
}

void cell_cursor_advance(struct cell_cursor *cursor, const struct cell_table *table)
{
    if (cursor->next)
        cell_cursor_set(cursor, table, cursor->next->link.next);
}

void cell_cursor_end(struct cell_cursor *cursor)
{
    list_unlink(&cursor->link);
    cursor->next = NULL;
}

void cell_table_remove(struct cell_table *table, struct cell *cell)
{
    struct cell **place = bucket_of(table, cell->hash);

    list_for_each_safe (node, &cell->cursors)
        cell_cursor_advance(list_entry(node, struct cell_cursor, link), table);
    while (*place != cell)
        place = &(*place)->next_in_bucket;
    *place = cell->next_in_bucket;
    list_unlink(&cell->link);
    table->n_cells--;
}
