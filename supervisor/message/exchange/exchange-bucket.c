/* SPDX-License-Identifier: MIT */

/* Keeps the subscriptions of an exchange by their topics. */

#include "supervisor/message/exchange/exchange-private.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

void *exchange_new_with_topic(size_t size, const struct topic *topic, struct topic *ret)
{
    char *object = calloc(1, size + topic->type_size + topic->key_size);

    if (object)
        *ret = topic_copy(topic, object + size);
    return object;
}

/* For buckets and patterns, which begin with their topic. */
static int compare_topics(const void *a, const void *b)
{
    return topic_compare(a, b);
}

struct topic exchange_label(const struct exchange *exchange, const struct topic *topic)
{
    struct topic label = {.type = ""};

    if (exchange->kind != EXCHANGE_SINGLE) {
        label.type = topic->type;
        label.type_size = topic->type_size;
    }
    if (exchange->kind >= EXCHANGE_ROUTING_KEY) {
        label.key = topic->key;
        label.key_size = topic->key_size;
    }
    return label;
}

struct exchange_bucket *exchange_find_bucket(const struct exchange *exchange,
                                             const struct topic *label)
{
    void *const *node = tfind(label, &exchange->buckets, compare_topics);

    return node ? *node : NULL;
}

struct exchange_patterns *exchange_find_patterns(const struct exchange *exchange,
                                                 const struct topic *type)
{
    const struct topic label = {.type = type->type, .type_size = type->type_size};
    void *const *node = tfind(&label, &exchange->patterns, compare_topics);

    return node ? *node : NULL;
}

static int bucket_add_pattern(struct exchange *exchange, struct exchange_bucket *bucket)
{
    struct exchange_patterns *patterns = exchange_find_patterns(exchange, &bucket->topic);
    const struct topic type = {.type = bucket->topic.type, .type_size = bucket->topic.type_size};
    struct topic copy;

    if (!patterns) {
        patterns = exchange_new_with_topic(sizeof(*patterns), &type, &copy);
        if (!patterns)
            return -ENOMEM;
        patterns->topic = copy;
        list_init(&patterns->buckets);
        if (!tsearch(patterns, &exchange->patterns, compare_topics)) {
            free(patterns);
            return -ENOMEM;
        }
    }
    bucket->patterns = patterns;
    list_push_back(&patterns->buckets, &bucket->pattern_link);
    return 0;
}

void exchange_bucket_free(struct exchange *exchange, struct exchange_bucket *bucket)
{
    struct exchange_patterns *patterns = bucket->patterns;

    tdelete(bucket, &exchange->buckets, compare_topics);
    list_unlink(&bucket->pattern_link);
    free(bucket);
    if (patterns && list_empty(&patterns->buckets)) {
        tdelete(patterns, &exchange->patterns, compare_topics);
        free(patterns);
    }
}

struct exchange_bucket *exchange_bucket_new(struct exchange *exchange, const struct topic *label)
{
    struct topic copy;
    struct exchange_bucket *bucket = exchange_new_with_topic(sizeof(*bucket), label, &copy);

    if (!bucket)
        return NULL;
    bucket->topic = copy;
    list_init(&bucket->subscriptions);
    list_init(&bucket->pattern_link);
    if (!tsearch(bucket, &exchange->buckets, compare_topics)) {
        free(bucket);
        return NULL;
    }
    if (exchange->kind == EXCHANGE_PATTERN && label->key &&
        exchange_is_pattern(label->key, label->key_size) &&
        bucket_add_pattern(exchange, bucket) < 0) {
        exchange_bucket_free(exchange, bucket);
        return NULL;
    }
    return bucket;
}
