/* SPDX-License-Identifier: MIT */
#pragma once

/* Numbers of places by key, as long as the key is there. Its size is fixed; the kernel backs only
 * the pages in use. */

#include <stdint.h>

#define TABLE_MAX     65536
#define TABLE_BUCKETS 16384

/* Valid when zeroed. Keys with consecutive low bits use the least memory. */
struct table {
    uint32_t buckets[TABLE_BUCKETS];
    uint32_t free, n_touched; /* no place from `n_touched` on has ever been used */
    uint32_t n;
    struct {
        uint64_t key;  /* 0 = a free place */
        uint32_t next; /* in its bucket or the free list, plus 1; 0 = none */
    } places[TABLE_MAX];
};

/* Returns the place of a key that is not there yet, or -1 if all are in use. Keys are not 0. */
int table_add(struct table *table, uint64_t key);
/* Returns its place, or -1. */
int table_find(const struct table *table, uint64_t key);
/* Frees its place. Returns that, or -1 if the key is not there. */
int table_remove(struct table *table, uint64_t key);
/* Returns the first place in use from this one on, or -1. */
int table_next(const struct table *table, uint32_t place);
