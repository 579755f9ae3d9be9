/* SPDX-License-Identifier: MIT */
/* A leftist heap: a left child's rank is never smaller than that of its right sibling, so the way
 * down to the right is at most log2 of the number of nodes. */
#include "shared/base/heap.h"

static bool is_before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static unsigned rank_of(const struct heap_node *node)
{
    return node ? node->rank : 0;
}

/* Restores the order of the node's children after one has changed. Returns whether its rank has
 * changed. */
static bool rank_children(struct heap_node *node)
{
    const unsigned before = node->rank;

    if (rank_of(node->left) < rank_of(node->right)) {
        struct heap_node *left = node->left;
        node->left = node->right;
        node->right = left;
    }
    node->rank = (uint8_t)(rank_of(node->right) + 1);
    return node->rank != before;
}

/* Returns the root of both trees. Its depth is that of their ways down to the right. */
static struct heap_node *merge(struct heap_node *a, struct heap_node *b)
{
    if (!a || !b)
        return a ? a : b;
    if (is_before(b, a))
        return merge(b, a);
    a->right = merge(a->right, b);
    a->right->parent = a;
    (void)rank_children(a);
    return a;
}

/* Puts the tree, NULL = none, in the node's place. */
static void replace(struct heap *heap, const struct heap_node *node, struct heap_node *tree)
{
    struct heap_node *parent = node->parent;

    if (tree)
        tree->parent = parent;
    if (!parent)
        heap->first = tree;
    else if (parent->left == node)
        parent->left = tree;
    else
        parent->right = tree;
    while (parent && rank_children(parent))
        parent = parent->parent;
}

void heap_set(struct heap *heap, struct heap_node *node, uint64_t key)
{
    heap_remove(heap, node);
    *node = (struct heap_node){.key = key, .order = heap->n_set++, .rank = 1};
    heap->first = merge(heap->first, node);
    heap->first->parent = NULL;
    heap->n_nodes++;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    if (!heap_has(node))
        return;
    replace(heap, node, merge(node->left, node->right));
    node->rank = 0;
    heap->n_nodes--;
}
