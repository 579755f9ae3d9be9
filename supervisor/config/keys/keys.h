/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What can be configured: one row per key. Everything that is true of all keys — reading, defaults,
 * comparing, freeing, messages — goes over these rows, so a new key is a field in config.h, a row
 * here, a paragraph in the manual and a line in the example; tests hold the four together.
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

/* How fields of one kind are read, compared and let go. */
struct config_type {
    size_t size; /* of the field */
    /* Replaces the field, or adds to it. 0, -ENOMEM, or CONFIG_KEY_E_INVALID with `*ret_reason`
     * (static). */
    int (*parse)(const struct config_key *key, const char *value, void *field,
                 const char **ret_reason);
    void (*clear)(void *field);                  /* NULL: nothing to free */
    bool (*equal)(const void *a, const void *b); /* NULL: the bytes are compared */
};

struct config_choice {
    const char *name;
    int value;
};

struct config_key {
    const char *section, *name;
    const struct config_type *type;
    size_t offset, size;
    size_t set_offset;    /* of a bool that tells whether the key was given; 0 = none */
    const char *fallback; /* the default as one would write it; NULL = unset */
    const char *allowed;  /* ends the sentence "allowed: …" */
    int64_t min, max;     /* numbers, bytes, microseconds */
    bool infinity;        /* "infinity" is allowed as well */
    const struct config_choice *choices; /* ends with a NULL name */
    bool live; /* only the supervisor looks at it: no worker needs a restart when it changes */
};

/* All keys of one kind of file. */
struct config_schema {
    const struct config_key *keys;
    size_t n_keys;
};

extern const struct config_schema CONFIG_GROUP_SCHEMA;    /* of struct config_group */
extern const struct config_schema CONFIG_DAEMON_SCHEMA;   /* of struct config_daemon */
extern const struct config_schema CONFIG_EXCHANGE_SCHEMA; /* of struct config_exchange */

/* NULL if there is none. Sections and keys are matched exactly. */
const struct config_key *config_schema_find(const struct config_schema *schema, const char *section,
                                            const char *name);
bool config_schema_has_section(const struct config_schema *schema, const char *section);

/*
 * One assignment to the field of `key` in `object`; the empty value goes back to the default. 0,
 * -ENOMEM, or CONFIG_KEY_E_INVALID with `*ret_reason` (static text; the field may have been
 * cleared).
 */
int config_key_assign(const struct config_key *key, void *object, const char *value,
                      const char **ret_reason);

/* All keys of a zeroed object to their defaults. 0 or -ENOMEM; to be ended with
 * config_schema_clear(). */
int config_schema_defaults(const struct config_schema *schema, void *object);
void config_schema_clear(const struct config_schema *schema, void *object);

/* Whether all keys are equal; `only_process` leaves out those that take effect without a restart.
 */
bool config_schema_equal(const struct config_schema *schema, const void *a, const void *b,
                         bool only_process);
