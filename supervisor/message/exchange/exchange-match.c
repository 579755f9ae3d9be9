/* SPDX-License-Identifier: MIT */

/* Finds the subscriptions that match a message. */

#include "supervisor/message/exchange/exchange.h"

#include "shared/base/cleanup.h"
#include "supervisor/message/exchange/exchange-private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct word {
    const char *start;
    uint32_t size;
};

/* The word at *at, which moves to the next word, or beyond `size` after the last. */
static struct word next_word(const char *text, uint32_t size, uint32_t *at)
{
    const char *start = text + *at;
    const char *dot = memchr(start, '.', size - *at);
    const uint32_t length = dot ? (uint32_t)(dot - start) : size - *at;

    *at += length + 1;
    return (struct word){start, length};
}

/* An empty key has no words. */
static bool has_word(uint32_t size, uint32_t at)
{
    return size > 0 && at <= size;
}

static bool word_is(struct word word, char c)
{
    return word.size == 1 && word.start[0] == c;
}

bool exchange_is_pattern(const char *key, uint32_t size)
{
    uint32_t at = 0;

    while (has_word(size, at)) {
        const struct word word = next_word(key, size, &at);

        if (word_is(word, '*') || word_is(word, '#'))
            return true;
    }
    return false;
}

/* The number of words from `at` to the next `#`. */
static uint32_t count_to_hash(const char *text, uint32_t size, uint32_t at, bool *ret_hash)
{
    uint32_t n = 0;

    for (*ret_hash = false; has_word(size, at); n++)
        if (word_is(next_word(text, size, &at), '#')) {
            *ret_hash = true;
            break;
        }
    return n;
}

static uint32_t count_words(const char *text, uint32_t size, uint32_t at)
{
    uint32_t n = 0;

    for (; has_word(size, at); n++)
        (void)next_word(text, size, &at);
    return n;
}

uint32_t exchange_pattern_effort(const char *pattern, uint32_t size)
{
    uint32_t at = 0, effort = 1 + count_words(pattern, size, 0);

    while (has_word(size, at)) {
        bool more;
        uint32_t n;

        if (!word_is(next_word(pattern, size, &at), '#'))
            continue;
        /* Words between two `#` may be tried at every word of the key. */
        n = count_to_hash(pattern, size, at, &more);
        if (more)
            effort += n * (TOPIC_KEY_MAX / 2 + 1);
    }
    return effort;
}

/* Skips to the last `n_wanted` words of the key, for those behind the last `#`. False: too few. */
static bool skip_to_end(const char *key, uint32_t size, uint32_t *at, uint32_t n_wanted)
{
    uint32_t n = count_words(key, size, *at);

    for (; n > n_wanted; n--)
        (void)next_word(key, size, at);
    return n == n_wanted;
}

/*
 * As with file name patterns: a `#` first stands for no word, then for one more each time; an
 * earlier
 * `#` is never reconsidered. See exchange_pattern_effort().
 */
bool exchange_pattern_matches(const char *pattern, uint32_t pattern_size, const char *key,
                              uint32_t key_size)
{
    uint32_t p = 0, k = 0, retry_p = 0, retry_k = 0;
    bool can_retry = false;

    for (;;) {
        uint32_t p_next = p, k_next = k;
        const bool p_more = has_word(pattern_size, p), k_more = has_word(key_size, k);
        struct word wanted = {0}, word = {0};

        if (p_more)
            wanted = next_word(pattern, pattern_size, &p_next);
        if (k_more)
            word = next_word(key, key_size, &k_next);
        if (p_more && word_is(wanted, '#')) {
            const uint32_t n = count_to_hash(pattern, pattern_size, p_next, &can_retry);
            if (!can_retry && !skip_to_end(key, key_size, &k, n))
                return false;
            retry_p = p = p_next;
            retry_k = k;
            continue;
        }
        if (!p_more && !k_more)
            return true;
        if (p_more && k_more &&
            (word_is(wanted, '*') ||
             (wanted.size == word.size && memcmp(wanted.start, word.start, word.size) == 0))) {
            p = p_next;
            k = k_next;
            continue;
        }
        if (!can_retry || !has_word(key_size, retry_k))
            return false;
        (void)next_word(key, key_size, &retry_k);
        p = retry_p;
        k = retry_k;
    }
}

#define MATCHES_IN_PLACE 32

struct match {
    uint64_t sequence, actor;
};

struct matches {
    struct match place[MATCHES_IN_PLACE];
    struct match *heap; /* NULL while they fit in place */
    size_t n, n_allocated;
};

static struct match *matches_items(struct matches *matches)
{
    return matches->heap ? matches->heap : matches->place;
}

static void matches_deinit(struct matches *matches)
{
    free(matches->heap);
}

static int matches_grow(struct matches *matches)
{
    const size_t n = matches->n_allocated * 2;
    struct match *heap = reallocarray(matches->heap, n, sizeof(*heap));

    if (!heap)
        return -ENOMEM;
    if (!matches->heap)
        memcpy(heap, matches->place, sizeof(matches->place));
    matches->heap = heap;
    matches->n_allocated = n;
    return 0;
}

static int matches_add(struct matches *matches, const struct exchange_bucket *bucket)
{
    list_for_each (node, &bucket->subscriptions) {
        const struct exchange_subscription *subscription =
            list_entry(node, struct exchange_subscription, bucket_link);

        if (matches->n == matches->n_allocated && matches_grow(matches) < 0)
            return -ENOMEM;
        matches_items(matches)[matches->n++] = (struct match){
            .sequence = subscription->sequence, .actor = subscription->subscriber->actor};
    }
    return 0;
}

static int add_if_any(const struct exchange *exchange, const struct topic *label,
                      struct matches *matches)
{
    const struct exchange_bucket *bucket = exchange_find_bucket(exchange, label);

    /* Patterns are matched by add_patterns(), also if the message's key equals one. */
    return bucket && !bucket->patterns ? matches_add(matches, bucket) : 0;
}

static int add_patterns(const struct exchange *exchange, const struct topic *label,
                        struct matches *matches)
{
    const struct exchange_patterns *patterns = exchange_find_patterns(exchange, label);

    if (!patterns)
        return 0;
    list_for_each (node, &patterns->buckets) {
        const struct exchange_bucket *bucket =
            list_entry(node, struct exchange_bucket, pattern_link);
        const struct topic *wanted = &bucket->topic;

        if (exchange_pattern_matches(wanted->key, wanted->key_size, label->key, label->key_size) &&
            matches_add(matches, bucket) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Collects the subscriptions to exactly this type. */
static int collect_type(const struct exchange *exchange, const struct topic *label,
                        struct matches *matches)
{
    struct topic without = *label;

    without.key = NULL;
    if (add_if_any(exchange, &without, matches) < 0)
        return -ENOMEM;
    if (!label->key)
        return 0;
    if (add_if_any(exchange, label, matches) < 0)
        return -ENOMEM;
    return exchange->patterns ? add_patterns(exchange, label, matches) : 0;
}

static int by_sequence(const void *a, const void *b)
{
    const struct match *left = a, *right = b;

    return (left->sequence > right->sequence) - (left->sequence < right->sequence);
}

/* Collects the one of the exact type, else the first registered of the ancestors. */
static int collect_one(const struct exchange *exchange, const struct topic *topic,
                       struct matches *matches)
{
    struct topic label = exchange_label(exchange, topic);
    struct match *items = matches->place;
    const uint32_t exact = label.type_size;

    do {
        if (add_if_any(exchange, &label, matches) < 0)
            return -ENOMEM;
        if (label.type_size == exact && matches->n > 0)
            return 0;
        /* Two at most, so items in place. */
        if (matches->n == 2 && by_sequence(&items[1], &items[0]) < 0)
            items[0] = items[1];
        if (matches->n == 2)
            matches->n = 1;
    } while (topic_type_parent(label.type, &label.type_size));
    return 0;
}

static int collect_all(const struct exchange *exchange, const struct topic *topic,
                       struct matches *matches)
{
    struct topic label = exchange_label(exchange, topic);

    do {
        if (collect_type(exchange, &label, matches) < 0)
            return -ENOMEM;
    } while (topic_type_parent(label.type, &label.type_size));
    if (matches->n > 1)
        qsort(matches_items(matches), matches->n, sizeof(struct match), by_sequence);
    return 0;
}

int exchange_route(const struct exchange *exchange, const struct topic *topic,
                   exchange_deliver_fn deliver, void *userdata)
{
    _cleanup_(matches_deinit)
    struct matches matches;
    int r;

    matches.heap = NULL;
    matches.n = 0;
    matches.n_allocated = MATCHES_IN_PLACE;
    r = exchange_picks_one(exchange) ? collect_one(exchange, topic, &matches)
                                     : collect_all(exchange, topic, &matches);
    if (r < 0)
        return r;
    for (size_t i = 0; i < matches.n; i++)
        deliver(userdata, matches_items(&matches)[i].actor);
    return (int)matches.n;
}
