/* SPDX-License-Identifier: MIT */

/* Finds the subscriptions that match a message. */

#include "supervisor/message/exchange/exchange.h"

#include "supervisor/message/exchange/exchange-private.h"

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

/* The subscriptions of a bucket after `last`; at first that may be the bucket's list itself. */
struct source {
    const struct list *all, *last;
};

/* A bucket for each type that a name can be within, without and with a key. */
#define SOURCES_MAX (2 * (TOPIC_TYPE_MAX + 1))

static void add_source(const struct exchange *exchange, const struct topic *label, uint64_t after,
                       struct source *sources, size_t *n)
{
    struct exchange_bucket *bucket = exchange_find_bucket(exchange, label);

    if (bucket)
        sources[(*n)++] = (struct source){
            .all = &bucket->subscriptions,
            .last = after > 0 ? skip_passed(bucket, after) : &bucket->subscriptions,
        };
}

/* Returns the next subscription in the order of registration; NULL = there is none. */
static const struct exchange_subscription *take_next(struct source *sources, size_t n)
{
    const struct exchange_subscription *next = NULL;
    struct source *from = NULL;

    for (struct source *source = sources; source < sources + n; source++) {
        if (source->last->next == source->all ||
            (next && subscription_of(source->last->next)->sequence > next->sequence))
            continue;
        next = subscription_of(source->last->next);
        from = source;
    }
    if (from)
        from->last = from->last->next;
    return next;
}

size_t exchange_match(const struct exchange *exchange, const struct topic *topic, uint64_t after,
                      struct exchange_match *ret, size_t max)
{
    const struct exchange_subscription *next;
    struct topic label = exchange_label(exchange, topic);
    struct source sources[SOURCES_MAX];
    size_t n_sources = 0, n = 0;

    do {
        struct topic without = label;

        without.key = NULL;
        add_source(exchange, &without, after, sources, &n_sources);
        if (label.key)
            add_source(exchange, &label, after, sources, &n_sources);
    } while (topic_type_parent(label.type, &label.type_size));
    while (n < max && (next = take_next(sources, n_sources)))
        ret[n++] =
            (struct exchange_match){.sequence = next->sequence, .actor = next->subscriber->actor};
    return n;
}

/* A subscription to the exact type comes before all others. */
uint64_t exchange_pick(const struct exchange *exchange, const struct topic *topic)
{
    struct topic label = exchange_label(exchange, topic);
    const uint32_t exact = label.type_size;
    const struct exchange_subscription *first = NULL;

    do {
        const struct exchange_bucket *bucket = exchange_find_bucket(exchange, &label);
        const struct exchange_subscription *found =
            bucket ? subscription_of(list_first(&bucket->subscriptions)) : NULL;

        if (found && (!first || found->sequence < first->sequence))
            first = found;
    } while (!(label.type_size == exact && first) &&
             topic_type_parent(label.type, &label.type_size));
    return first ? first->subscriber->actor : 0;
}
