/* SPDX-License-Identifier: MIT */

/* Finds the subscriptions that match a message. */

#include "supervisor/message/exchange/exchange.h"

#include "supervisor/message/exchange/exchange-private.h"
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

/* Skips to the last `n_wanted` words of the key, for the words behind the last `#`, without reading
 * the words before them: there may be a hundred. Returns false if there are too few. */
static bool skip_to_end(const char *key, uint32_t size, uint32_t *at, uint32_t n_wanted)
{
    uint32_t start = has_word(size, *at) ? size + 1 : *at;

    for (; n_wanted > 0 && start > *at; n_wanted--) {
        const char *dot = memrchr(key + *at, '.', start - 1 - *at);

        start = dot ? (uint32_t)(dot - key) + 1 : *at;
    }
    *at = start;
    return n_wanted == 0;
}

/*
 * Like file name patterns: a `#` first matches no word, then one more each time; an earlier `#` is
 * never reconsidered. See exchange_pattern_effort().
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
        if (k_more)
            word = next_word(key, key_size, &k_next);
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

    /* Patterns are matched by add_patterns(), even if the message's key equals one. */
    if (bucket && !list_linked(&bucket->pattern_link))
        select_from(selection, bucket);
}

static void add_patterns(const struct exchange *exchange, const struct topic *topic,
                         struct selection *selection)
{
    list_for_each_entry (bucket, &exchange->patterns, struct exchange_bucket, pattern_link) {
        const struct topic *wanted = &bucket->topic;

        if (topic_type_is_a(topic->type, topic->type_size, wanted->type, wanted->type_size) &&
            exchange_pattern_matches(wanted->key, wanted->key_size, topic->key, topic->key_size))
            select_from(selection, bucket);
    }
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

    if (topic->key)
        add_patterns(exchange, topic, &selection);
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
