/* SPDX-License-Identifier: MIT */
#pragma once

/* A binary heap of embedded nodes, the one with the smallest key first: setting, changing and
 * removing a key are O(log n), finding the first is O(1). Equal keys are in the order of setting.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    uint64_t key;
    uint64_t order; /* among those of the same key */
    size_t index;   /* position in the heap + 1; 0 = in no heap */
};

struct heap {
    struct heap_node **nodes;
    size_t n_nodes, n_allocated;
    uint64_t n_set; /* ever */
};

/* clang-format off */
#define HEAP_NULL {0}
/* clang-format on */

/* Frees the heap; nodes that were in it are then in no heap. */
void heap_deinit(struct heap *heap);

static inline bool heap_has(const struct heap_node *node)
{
    return node->index > 0;
}

/* Makes room for `n` nodes in all. Returns 0 or -ENOMEM. */
int heap_reserve(struct heap *heap, size_t n);
/* Adds the node, or changes its key. Returns 0, or -ENOMEM with the node in no heap; cannot fail if
 * the node is in this heap, or if there is room for it. */
int heap_set(struct heap *heap, struct heap_node *node, uint64_t key);
/* Idempotent. */
void heap_remove(struct heap *heap, struct heap_node *node);

/* NULL = empty */
static inline struct heap_node *heap_first(const struct heap *heap)
{
    return heap->n_nodes > 0 ? heap->nodes[0] : NULL;
}
