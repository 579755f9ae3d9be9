/* SPDX-License-Identifier: MIT */
#include "shared/base/heap.h"

#include "shared/base/fault.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define N_LEAST 64

static bool is_before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static void place(struct heap *heap, size_t i, struct heap_node *node)
{
    heap->nodes[i] = node;
    node->index = i + 1;
}

/* Moves `node` from the hole at `i` towards the root until its parent is not behind it. */
static void sift_up(struct heap *heap, size_t i, struct heap_node *node)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (is_before(heap->nodes[parent], node))
            break;
        place(heap, i, heap->nodes[parent]);
        i = parent;
    }
    place(heap, i, node);
}

static void sift_down(struct heap *heap, size_t i, struct heap_node *node)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= heap->n_nodes)
            break;
        if (child + 1 < heap->n_nodes && is_before(heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (is_before(node, heap->nodes[child]))
            break;
        place(heap, i, heap->nodes[child]);
        i = child;
    }
    place(heap, i, node);
}

void heap_deinit(struct heap *heap)
{
    for (size_t i = 0; i < heap->n_nodes; i++)
        heap->nodes[i]->index = 0;
    free(heap->nodes);
    *heap = (struct heap)HEAP_NULL;
}

int heap_reserve(struct heap *heap, size_t n)
{
    size_t n_new = heap->n_allocated > 0 ? heap->n_allocated : N_LEAST;
    struct heap_node **nodes;

    if (n <= heap->n_allocated)
        return 0;
    while (n_new < n)
        n_new *= 2;
    nodes = fault_inject("alloc") < 0 ? NULL : reallocarray(heap->nodes, n_new, sizeof(*nodes));
    if (!nodes)
        return -ENOMEM;
    heap->nodes = nodes;
    heap->n_allocated = n_new;
    return 0;
}

static void change_key(struct heap *heap, struct heap_node *node, uint64_t key)
{
    const bool earlier = key < node->key;

    node->key = key;
    node->order = heap->n_set++;
    if (earlier)
        sift_up(heap, node->index - 1, node);
    else
        sift_down(heap, node->index - 1, node);
}

int heap_set(struct heap *heap, struct heap_node *node, uint64_t key)
{
    int r;

    if (heap_has(node)) {
        change_key(heap, node, key);
        return 0;
    }
    r = heap_reserve(heap, heap->n_nodes + 1);
    if (r < 0)
        return r;
    node->key = key;
    node->order = heap->n_set++;
    sift_up(heap, heap->n_nodes++, node);
    return 0;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    struct heap_node *last;
    size_t i;

    if (!heap_has(node))
        return;
    i = node->index - 1;
    last = heap->nodes[--heap->n_nodes];
    node->index = 0;
    if (last == node)
        return;
    if (i > 0 && is_before(last, heap->nodes[(i - 1) / 2]))
        sift_up(heap, i, last);
    else
        sift_down(heap, i, last);
}
