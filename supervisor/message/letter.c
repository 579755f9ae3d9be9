/* SPDX-License-Identifier: MIT */
#include "supervisor/message/letter.h"

#include "shared/fault.h"
#include <stdlib.h>
#include <string.h>

struct letter_block {
    struct letter letter;
    char bytes[]; /* type, then key */
};

struct letter *letter_new(uint16_t kind, const struct topic *topic)
{
    const uint32_t key_size = topic->key ? topic->key_size : 0;
    struct letter_block *block = NULL;
    struct letter *letter;

    if (fault_inject("letter") == 0)
        block = calloc(1, sizeof(*block) + topic->type_size + key_size + 1);
    if (!block)
        return NULL;
    letter = &block->letter;
    list_init(&letter->link);
    letter->kind = kind;
    letter->payload = (struct parcel)PARCEL_NULL;
    if (topic->type_size > 0)
        memcpy(block->bytes, topic->type, topic->type_size);
    if (key_size > 0)
        memcpy(block->bytes + topic->type_size, topic->key, key_size);
    letter->topic = (struct topic){
        .type = block->bytes,
        .type_size = topic->type_size,
        .key = topic->key ? block->bytes + topic->type_size : NULL,
        .key_size = key_size,
    };
    return letter;
}

/* All fields but link, topic and payload. */
static struct letter *new_like(const struct letter *letter, const struct topic *topic)
{
    struct letter *copy = letter_new(letter->kind, topic);
    const struct topic own = copy ? copy->topic : (struct topic){0};

    if (!copy)
        return NULL;
    *copy = *letter;
    list_init(&copy->link);
    copy->topic = own;
    copy->payload = (struct parcel)PARCEL_NULL;
    return copy;
}

struct letter *letter_copy(const struct letter *letter)
{
    struct letter *copy = new_like(letter, &letter->topic);

    if (copy && parcel_copy(&copy->payload, &letter->payload) < 0)
        return letter_free(copy);
    return copy;
}

struct letter *letter_new_like(struct letter *letter, const struct topic *topic)
{
    struct letter *changed = new_like(letter, topic);

    if (changed)
        parcel_move(&changed->payload, &letter->payload);
    return changed;
}

struct letter *letter_free(struct letter *letter)
{
    if (!letter)
        return NULL;
    parcel_deinit(&letter->payload);
    free(list_entry(letter, struct letter_block, letter));
    return NULL;
}

/* A descriptor is dearer than its bytes: there are few of them, and workers need some to start. */
#define LETTER_BLOB_COST (UINT64_C(64) << 10)

uint64_t letter_bytes(const struct letter *letter)
{
    const uint64_t blob = letter->payload.fd >= 0 ? LETTER_BLOB_COST : 0;

    return blob + sizeof(*letter) + letter->topic.type_size + letter->topic.key_size +
           letter->payload.size;
}
