/* SPDX-License-Identifier: MIT */
#include "shared/base/heap.h"
#include "tests/unit/suite.h"

#define N_NODES 300

static struct heap heap;
static struct heap_node nodes[N_NODES];
static uint64_t n_set;
static uint64_t set_at[N_NODES]; /* which call set it */

static void setup(void)
{
    heap = (struct heap)HEAP_NULL;
}

static void set(size_t i, uint64_t key)
{
    heap_set(&heap, &nodes[i], key);
    set_at[i] = n_set++;
}

static int compare(const void *a, const void *b)
{
    const struct heap_node *left = *(const struct heap_node *const *)a;
    const struct heap_node *right = *(const struct heap_node *const *)b;
    const uint64_t at = set_at[left - nodes], other = set_at[right - nodes];

    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    return at < other ? -1 : at > other;
}

/* All nodes of the heap in their order, by sorting. */
static size_t sorted(struct heap_node **ret)
{
    size_t n = 0;

    for (size_t i = 0; i < N_NODES; i++) {
        if (heap_has(&nodes[i]))
            ret[n++] = &nodes[i];
    }
    qsort(ret, n, sizeof(ret[0]), compare);
    return n;
}

static void check_order(void)
{
    struct heap_node *expected[N_NODES];
    const size_t n = sorted(expected);

    ck_assert_uint_eq(heap.n_nodes, n);
    ck_assert_ptr_eq(heap_first(&heap), n > 0 ? expected[0] : NULL);
}

TEST(the_first_one_is_known_after_any_changes)
{
    srand(1);
    for (unsigned round = 0; round < 20000; round++) {
        const size_t i = (size_t)rand() % N_NODES;

        if (rand() % 3 == 0)
            heap_remove(&heap, &nodes[i]);
        else
            set(i, (uint64_t)rand() % 100);
        if (round % 50 == 0)
            check_order();
    }
}

/* Returns its rank, 0 = no node. */
static unsigned check_tree(const struct heap_node *node, const struct heap_node *parent)
{
    unsigned left, right;

    if (!node)
        return 0;
    ck_assert_ptr_eq(node->parent, parent);
    left = check_tree(node->left, node);
    right = check_tree(node->right, node);
    ck_assert_uint_ge(left, right);
    ck_assert_uint_eq(node->rank, right + 1);
    return node->rank;
}

TEST(the_way_to_the_right_stays_short)
{
    srand(2);
    for (unsigned round = 0; round < 2000; round++) {
        const size_t i = (size_t)rand() % N_NODES;

        if (rand() % 3 == 0)
            heap_remove(&heap, &nodes[i]);
        else
            set(i, round % 1000 < 500 ? round : (uint64_t)rand() % 100);
        (void)check_tree(heap_first(&heap), NULL);
    }
}

const struct suite suite = {.setup = setup};
