/* SPDX-License-Identifier: MIT */
#include "shared/protocol/topic.h"
#include <string.h>

bool topic_type_valid(const char *type, size_t size)
{
    /* Bit n of word w = the character 32 * w + n: one look per character, in any locale. */
    static const uint32_t allowed[8] = {[1] = 0x03ff6000, [2] = 0x87fffffe, [3] = 0x07fffffe};

    if (size > TOPIC_TYPE_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        const uint8_t c = (uint8_t)type[i];
        if (!(allowed[c >> 5] >> (c & 31) & 1))
            return false;
    }
    return true;
}

bool topic_type_parent(const char *type, uint32_t *size)
{
    if (*size == 0)
        return false;
    do
        (*size)--;
    while (*size > 0 && type[*size] != '.');
    return true;
}

bool topic_type_is_a(const char *type, uint32_t size, const char *ancestor, uint32_t ancestor_size)
{
    if (ancestor_size == 0)
        return true;
    return size >= ancestor_size && memcmp(type, ancestor, ancestor_size) == 0 &&
           (size == ancestor_size || type[ancestor_size] == '.');
}

static int compare_bytes(const char *a, uint32_t a_size, const char *b, uint32_t b_size)
{
    const uint32_t common = a_size < b_size ? a_size : b_size;
    const int order = common > 0 ? memcmp(a, b, common) : 0;

    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

int topic_compare(const struct topic *a, const struct topic *b)
{
    int order = compare_bytes(a->type, a->type_size, b->type, b->type_size);

    if (order != 0)
        return order;
    if (!a->key || !b->key)
        return (a->key != NULL) - (b->key != NULL);
    return compare_bytes(a->key, a->key_size, b->key, b->key_size);
}

struct topic topic_copy(const struct topic *topic, char *to)
{
    struct topic copy = {.type = to, .type_size = topic->type_size};

    if (topic->type_size > 0)
        memcpy(to, topic->type, topic->type_size);
    if (!topic->key)
        return copy;
    copy.key = to + topic->type_size;
    copy.key_size = topic->key_size;
    if (topic->key_size > 0)
        memcpy(to + topic->type_size, topic->key, topic->key_size);
    return copy;
}
