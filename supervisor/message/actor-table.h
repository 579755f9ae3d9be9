/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * All actors by reference (generation << 32 | index). A reference finds its actor in one step as
 * long as that exists, and never another one.
 */

#include <stddef.h>
#include <stdint.h>

struct actor;

struct actor_table {
    struct actor **entries; /* NULL = free */
    uint32_t *generations;
    uint32_t *free; /* a stack of indices */
    size_t n_entries, n_allocated, n_free;
};

void actor_table_deinit(struct actor_table *table); /* empty */

/* Sets actor->reference. 0 or -ENOMEM. */
int actor_table_add(struct actor_table *table, struct actor *actor);
void actor_table_remove(struct actor_table *table, struct actor *actor);

/* NULL = there is none any more, or there never was. */
struct actor *actor_get(const struct actor_table *table, uint64_t reference);
/* Iterates over all actors, for lists; NULL at the end. `cursor` starts at 0. */
struct actor *actor_next(const struct actor_table *table, size_t *cursor);
/* The actor's name; "" for 0, "(gone)" for one that has ended. Borrowed. */
const char *actor_name_of(const struct actor_table *table, uint64_t reference);
