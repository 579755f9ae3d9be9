/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Finds what an actor has by a number: an ask by its cookie, a watch by whom it watches. Adding,
 * finding and removing cost the same however many there are, each by itself: it grows by one place
 * with every entry, never all at once. Which numbers fall together is a secret of this process, so
 * that nobody can choose theirs to do so.
 */

#include <stddef.h>
#include <stdint.h>

/* Embedded in what is to be found; several may have the same key. */
struct index_entry {
    struct index_entry *next, *prev; /* in its place; prev NULL = the first there */
    uint64_t key;
};

struct index {
    struct index_entry *first; /* the first place, */
    struct index_entry **more; /* and the others */
    uint32_t n_more, n_allocated;
    uint32_t n_entries;
};

/* clang-format off */
#define INDEX_NULL {0}
/* clang-format on */

void index_deinit(struct index *index); /* empty */

/* Cannot fail: without memory to grow it becomes slower. */
void index_add(struct index *index, struct index_entry *entry, uint64_t key);
void index_remove(struct index *index, struct index_entry *entry);

/* One with this key, NULL = none; and another one. */
struct index_entry *index_find(const struct index *index, uint64_t key);
struct index_entry *index_find_next(const struct index_entry *entry);

/* A number for these bytes; the same throughout this process. */
uint64_t index_key(const void *bytes, size_t size);
