/* SPDX-License-Identifier: MIT */
#pragma once

/* The subject of a message: a type and a routing key. Types are dotted names: "order.created" is a
 * child of "order", and the empty type is the ancestor of all. A key is any bytes; an empty key
 * differs from no key. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOPIC_TYPE_MAX 128
#define TOPIC_KEY_MAX  255

/* Borrowed bytes, not terminated. */
struct topic {
    const char *type;
    uint32_t type_size;
    uint32_t key_size;
    const char *key; /* NULL = none */
};

/* At most TOPIC_TYPE_MAX characters of [A-Za-z0-9._-]; empty is allowed. */
bool topic_type_valid(const char *type, size_t size);

/* Shortens a type to its parent's: "a.b" to "a" to "". False when it was empty already. */
bool topic_type_parent(const char *type, uint32_t *size);

/* Whether `ancestor` is that type or one of its ancestors. */
bool topic_type_is_a(const char *type, uint32_t size, const char *ancestor, uint32_t ancestor_size);

/* Copies the bytes to `to`, which has room for both, and returns the copy. */
struct topic topic_copy(const struct topic *topic, char *to);

/* Orders by type, then key, no key first: <0, 0, >0. */
int topic_compare(const struct topic *a, const struct topic *b);
