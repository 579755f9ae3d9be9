/* SPDX-License-Identifier: MIT */

/* Finds the subscriptions that match a message. */

#include "supervisor/message/exchange/exchange.h"

#include "supervisor/message/exchange/exchange-private.h"
#include <stdlib.h>
#include <string.h>

/* The first `max` matches found, in the order of registration. They are a heap with the last of
 * them at the top. */
struct selection {
    struct exchange_match *matches;
    size_t n, max;
    uint64_t after;
};

static void swap_matches(struct exchange_match *a, struct exchange_match *b)
{
    const struct exchange_match other = *a;

    *a = *b;
    *b = other;
}

static void sift_up(struct exchange_match *heap, size_t at)
{
    for (; at > 0 && heap[at].sequence > heap[(at - 1) / 2].sequence; at = (at - 1) / 2)
        swap_matches(&heap[at], &heap[(at - 1) / 2]);
}

static void sift_down(struct exchange_match *heap, size_t n)
{
    size_t at = 0, child;

    while ((child = 2 * at + 1) < n) {
        if (child + 1 < n && heap[child + 1].sequence > heap[child].sequence)
            child++;
        if (heap[at].sequence >= heap[child].sequence)
            return;
        swap_matches(&heap[at], &heap[child]);
        at = child;
    }
}

/* Adds the match if it is among the first. Returns whether it is. */
static bool select_match(struct selection *selection, struct exchange_match match)
{
    struct exchange_match *heap = selection->matches;

    if (selection->n < selection->max) {
        heap[selection->n] = match;
        sift_up(heap, selection->n++);
        return true;
    }
    if (match.sequence > heap[0].sequence)
        return false;
    heap[0] = match;
    sift_down(heap, selection->n);
    return true;
}

static const struct exchange_subscription *subscription_of(const struct list *node)
{
    return list_entry(node, struct exchange_subscription, bucket_link);
}

/* Returns the last node up to the sequence `after`. The bucket remembers it, so a message that is
 * copied in pieces passes each subscription only once. */
static struct list *skip_passed(struct exchange_bucket *bucket, uint64_t after)
{
    struct list *head = &bucket->subscriptions, *node = bucket->passed;

    if (!node || subscription_of(node)->sequence > after)
        node = head;
    while (node->next != head && subscription_of(node->next)->sequence <= after)
        node = node->next;
    bucket->passed = node == head ? NULL : node;
    return node;
}

static void select_from(struct selection *selection, struct exchange_bucket *bucket)
{
    const struct list *head = &bucket->subscriptions, *node = head;

    if (selection->after > 0)
        node = skip_passed(bucket, selection->after);
    while ((node = node->next) != head) {
        const struct exchange_match match = {
            .sequence = subscription_of(node)->sequence,
            .actor = subscription_of(node)->subscriber->actor,
        };

        if (!select_match(selection, match))
            return;
    }
}

static void add_if_any(const struct exchange *exchange, const struct topic *label,
                       struct selection *selection)
{
    struct exchange_bucket *bucket = exchange_find_bucket(exchange, label);

    if (bucket)
        select_from(selection, bucket);
}

/* Selects from the subscriptions to exactly this type. */
static void add_type(const struct exchange *exchange, const struct topic *label,
                     struct selection *selection)
{
    struct topic without = *label;

    without.key = NULL;
    add_if_any(exchange, &without, selection);
    if (label->key)
        add_if_any(exchange, label, selection);
}

static int by_sequence(const void *a, const void *b)
{
    const struct exchange_match *left = a, *right = b;

    return (left->sequence > right->sequence) - (left->sequence < right->sequence);
}

size_t exchange_match(const struct exchange *exchange, const struct topic *topic, uint64_t after,
                      struct exchange_match *ret, size_t max)
{
    struct selection selection = {.matches = ret, .max = max, .after = after};
    struct topic label = exchange_label(exchange, topic);

    do {
        add_type(exchange, &label, &selection);
    } while (topic_type_parent(label.type, &label.type_size));
    qsort(ret, selection.n, sizeof(*ret), by_sequence);
    return selection.n;
}

/* A subscription to the exact type comes before all others. */
uint64_t exchange_pick(const struct exchange *exchange, const struct topic *topic)
{
    struct topic label = exchange_label(exchange, topic);
    const uint32_t exact = label.type_size;
    struct exchange_match first = {0};
    struct selection selection = {.matches = &first, .max = 1};

    do {
        add_if_any(exchange, &label, &selection);
    } while (!(label.type_size == exact && selection.n > 0) &&
             topic_type_parent(label.type, &label.type_size));
    return first.actor;
}
