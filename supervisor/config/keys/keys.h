/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What can be configured: one row per key, for reading, defaults, comparison, freeing and messages.
 * A new key is a field of the object, a row here, a paragraph in the manual page and a line in the
 * example; tests hold the four together.
 */

#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    _CONFIG_KEY_E_SUCCESS,
    CONFIG_KEY_E_INVALID,
};

struct config_key;

struct config_type {
    size_t size; /* of the field */
    /*
     * Replaces the field, or adds to it. Returns 0, -ENOMEM, or CONFIG_KEY_E_INVALID with
     * `*ret_reason` (static).
     */
    int (*parse)(const struct config_key *key, const char *value, void *field,
                 const char **ret_reason);
    int (*number)(const char *text, uint64_t *ret); /* for parse; one of values.h */
    /* For parse: appends one word to a list. Returns as parse() does. */
    int (*add)(struct config_strings *list, const char *word, const char **ret_reason);
    void (*clear)(void *field);                             /* NULL = nothing to free */
    bool (*equal)(const void *a, const void *b);            /* NULL = compares the bytes */
    uint64_t (*digest)(uint64_t digest, const void *field); /* NULL = of the bytes; see hash.h */
};

struct config_key {
    const char *section, *name; /* the name is unique in its schema */
    const struct config_type *type;
    size_t offset, size;
    size_t set_offset;    /* of a bool that tells whether the key was given; 0 = none */
    const char *fallback; /* the default as text; NULL = unset */
    const char *allowed; /* ends the sentence "allowed: …"; the names of an enumeration in order */
    int64_t min, max;    /* numbers, bytes, microseconds */
    bool infinity;       /* "infinity" is also allowed */
    bool live;           /* takes effect without a restart of workers */
};

/* All keys of one kind of file. */
struct config_schema {
    const struct config_key *keys;
    size_t n_keys;
};

extern const struct config_schema CONFIG_GROUP_SCHEMA;    /* of struct config_group */
extern const struct config_schema CONFIG_DAEMON_SCHEMA;   /* of struct config_daemon */
extern const struct config_schema CONFIG_EXCHANGE_SCHEMA; /* of struct config_exchange */
extern const struct config_schema CONFIG_LIMIT_SCHEMA;    /* of struct config_limit */
extern const struct config_schema CONFIG_SCHEDULE_SCHEMA; /* of struct config_schedule */

/* NULL if there is no such key. */
const struct config_key *config_schema_find(const struct config_schema *schema, const char *name);

/*
 * Assigns to the field of `key` in `object`; an empty value restores the default. Returns 0,
 * -ENOMEM, or CONFIG_KEY_E_INVALID with `*ret_reason` (static; the field may have been cleared).
 */
int config_key_assign(const struct config_key *key, void *object, const char *value,
                      const char **ret_reason);

/* Sets all keys of a zeroed object. Returns 0 or -ENOMEM; call config_schema_clear() in any case.
 */
int config_schema_defaults(const struct config_schema *schema, void *object);
void config_schema_clear(const struct config_schema *schema, void *object);

/* Compares all keys, or (`only_process`) those that need a restart of workers. */
bool config_schema_equal(const struct config_schema *schema, const void *a, const void *b,
                         bool only_process);
/* Whether the key has another value than its default. */
bool config_key_is_set(const struct config_key *key, const void *object, const void *defaults);
/* Continues from `digest` with the keys that need a restart of workers and differ from the
 * defaults: a version with more keys has the same digest. */
uint64_t config_schema_digest(const struct config_schema *schema, const void *object,
                              const void *defaults, uint64_t digest);
