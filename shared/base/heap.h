/* SPDX-License-Identifier: MIT */
#pragma once

/* A heap of embedded nodes, the one with the smallest key first: setting, changing and removing a
 * key are O(log n) at worst and need no memory, finding the first is O(1). Equal keys are in the
 * order of setting. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    uint64_t key;        /* stays after the node is removed */
    uint64_t order : 56; /* among those of the same key */
    uint64_t rank : 8;   /* nodes on the way down to the right; 0 = in no heap */
    struct heap_node *parent, *left, *right;
};

struct heap {
    struct heap_node *first; /* NULL = empty */
    size_t n_nodes;
    uint64_t n_set : 56; /* ever */
};

/* clang-format off */
#define HEAP_NULL {0}
/* clang-format on */

static inline bool heap_has(const struct heap_node *node)
{
    return node->rank > 0;
}

/* Adds the node, or changes its key. */
void heap_set(struct heap *heap, struct heap_node *node, uint64_t key);
/* Idempotent. */
void heap_remove(struct heap *heap, struct heap_node *node);

/* NULL = empty */
static inline struct heap_node *heap_first(const struct heap *heap)
{
    return heap->first;
}
