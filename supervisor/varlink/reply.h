/* SPDX-License-Identifier: MIT */
#pragma once

/* Writes the JSON text of a reply, member by member and without an intermediate tree. (Calls, which
 * are untrusted, are parsed by a JSON library.)
 *
 * Errors are sticky: after the first failure all functions do nothing, and `error` says why. `key`
 * is NULL inside arrays; keys are literals and are not escaped. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct account;

struct reply {
    struct account *account; /* borrowed; charged for the buffer */
    char *data;
    size_t size, allocated;
    size_t limit;  /* beyond it: -EMSGSIZE */
    int error;     /* 0, -EMSGSIZE, -ENOMEM, -EDQUOT: beyond the account's bounds */
    bool separate; /* a comma is due before the next member */
};

void reply_init(struct reply *reply, struct account *account, size_t limit);
void reply_deinit(struct reply *reply);
/* Empties it and clears the error; keeps the buffer. */
void reply_reset(struct reply *reply);

void reply_object(struct reply *reply, const char *key);
void reply_end_object(struct reply *reply);
void reply_array(struct reply *reply, const char *key);
void reply_end_array(struct reply *reply);

/* `size` bytes. Invalid UTF-8, and NUL, which many JSON readers refuse, become U+FFFD. */
void reply_text(struct reply *reply, const char *key, const void *data, size_t size);
void reply_string(struct reply *reply, const char *key, const char *text);
/* Left out if NULL or empty, or 0. */
void reply_string_if(struct reply *reply, const char *key, const char *text);
void reply_uint_if(struct reply *reply, const char *key, uint64_t value);

void reply_int(struct reply *reply, const char *key, int64_t value);
/* Values above INT64_MAX, such as USEC_INFINITY, are written as INT64_MAX. */
void reply_uint(struct reply *reply, const char *key, uint64_t value);
/* Writes "reference", as a string of digits: many JSON readers round numbers above 2^53. */
void reply_reference(struct reply *reply, uint64_t value);
void reply_bool(struct reply *reply, const char *key, bool value);

/* {"encoding": "utf8", "data": …}, or "base64" if the bytes are not text. */
void reply_payload(struct reply *reply, const char *key, const void *data, size_t size);

/* Unescaped: for text that is JSON already, and the NUL at the end of a message. */
void reply_raw(struct reply *reply, const char *text, size_t size);

/* Undoes what was written since the mark, also an error: for optional parts. */
struct reply_mark {
    size_t size;
    int error;
    bool separate;
};
struct reply_mark reply_mark(const struct reply *reply);
void reply_rewind(struct reply *reply, struct reply_mark mark);
