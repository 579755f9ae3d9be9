/* SPDX-License-Identifier: MIT */

/* Keeps the subscriptions of an exchange by their topics. */

#include "supervisor/message/exchange/exchange-private.h"

#include "shared/base/hash.h"
#include <stdlib.h>

void *exchange_new_with_topic(size_t size, const struct topic *topic, struct topic *ret)
{
    char *object = calloc(1, size + topic->type_size + topic->key_size);

    if (object)
        *ret = topic_copy(topic, object + size);
    return object;
}

struct topic exchange_label(const struct exchange *exchange, const struct topic *topic)
{
    struct topic label = {.type = ""};

    if (exchange->kind != EXCHANGE_SINGLE) {
        label.type = topic->type;
        label.type_size = topic->type_size;
    }
    if (exchange->kind == EXCHANGE_ROUTING_KEY) {
        label.key = topic->key;
        label.key_size = topic->key_size;
    }
    return label;
}

static uint64_t hash_of(const struct topic *label)
{
    const uint64_t hash = hash_bytes(label->type, label->type_size);

    return label->key ? hash ^ hash_mix(hash_bytes(label->key, label->key_size)) : hash;
}

struct exchange_bucket *exchange_find_bucket(const struct exchange *exchange,
                                             const struct topic *label)
{
    struct index_entry *entry = index_find(&exchange->buckets, hash_of(label));

    for (; entry; entry = index_find_next(entry)) {
        struct exchange_bucket *bucket = list_entry(entry, struct exchange_bucket, by_topic);

        if (topic_compare(&bucket->topic, label) == 0)
            return bucket;
    }
    return NULL;
}

void exchange_bucket_free(struct exchange *exchange, struct exchange_bucket *bucket)
{
    index_remove(&exchange->buckets, &bucket->by_topic);
    free(bucket);
}

struct exchange_bucket *exchange_bucket_new(struct exchange *exchange, const struct topic *label)
{
    struct topic copy;
    struct exchange_bucket *bucket = exchange_new_with_topic(sizeof(*bucket), label, &copy);

    if (!bucket)
        return NULL;
    bucket->topic = copy;
    list_init(&bucket->subscriptions);
    index_add(&exchange->buckets, &bucket->by_topic, hash_of(label));
    return bucket;
}
