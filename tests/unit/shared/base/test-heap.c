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

static void teardown(void)
{
    heap_deinit(&heap);
}

static void set(size_t i, uint64_t key)
{
    ck_assert_int_eq(heap_set(&heap, &nodes[i], key), 0);
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

TEST(nothing_is_allocated_within_what_was_reserved)
{
    ck_assert_int_eq(heap_reserve(&heap, 100), 0);
    struct heap_node **reserved = heap.nodes;
    for (size_t i = 0; i < 100; i++)
        set(i, i);
    ck_assert_uint_eq(heap.n_nodes, 100);
    ck_assert_ptr_eq(heap.nodes, reserved);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
