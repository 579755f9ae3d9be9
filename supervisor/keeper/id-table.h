/* SPDX-License-Identifier: MIT */
#pragma once

/* Numbers the ids of children and holdings: each id that is in the table has a place below
 * ID_TABLE_MAX. The size is fixed; the kernel backs only the pages in use. */

#include <stdint.h>

#define ID_TABLE_MAX     65536
#define ID_TABLE_BUCKETS 16384

/* Valid when zeroed. Ids with consecutive low bits use the least memory. */
struct id_table {
    uint32_t buckets[ID_TABLE_BUCKETS];
    uint32_t free, n_touched; /* no place from `n_touched` on has ever been used */
    uint32_t n;
    struct {
        uint64_t id;   /* 0 = a free place */
        uint32_t next; /* in its bucket or the free list, plus 1; 0 = none */
    } places[ID_TABLE_MAX];
};

/* Adds an id, which is neither 0 nor in the table. Returns its place, or -1 if all are in use. */
int id_table_add(struct id_table *table, uint64_t id);
/* Returns the place of the id, or -1 if it is not in the table. */
int id_table_find(const struct id_table *table, uint64_t id);
/* Removes the id. Returns the place that it had, or -1 if it is not in the table. */
int id_table_remove(struct id_table *table, uint64_t id);
/* Returns the first place in use from this one on, or -1. */
int id_table_next(const struct id_table *table, uint32_t place);
