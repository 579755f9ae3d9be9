/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The text of an answer, written member by member straight from the structs: a status of a thousand
 * workers is one pass, without a tree in between. (Calls are read by a JSON library: they are
 * hostile.)
 *
 * Sticky: after the first failure every call does nothing, and `error` says why. `key` is NULL
 * inside arrays; keys are literals of this program and are not escaped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct account;

struct reply {
    struct account *account; /* borrowed, what is allocated counts there; NULL = nowhere */
    char *data;
    size_t size, allocated;
    size_t limit;  /* beyond it: -EMSGSIZE */
    int error;     /* 0, -EMSGSIZE, -ENOMEM, -EDQUOT: beyond the account's bounds */
    bool separate; /* a comma is due before the next member */
};

void reply_init(struct reply *reply, size_t limit);
void reply_deinit(struct reply *reply);
/* Empties it and forgets the failure; keeps the buffer. */
void reply_reset(struct reply *reply);

void reply_object(struct reply *reply, const char *key);
void reply_end_object(struct reply *reply);
void reply_array(struct reply *reply, const char *key);
void reply_end_array(struct reply *reply);

/* `size` bytes of any kind. Bytes that are not UTF-8, and NUL, which many JSON readers refuse,
 * become U+FFFD. */
void reply_text(struct reply *reply, const char *key, const void *data, size_t size);
void reply_string(struct reply *reply, const char *key, const char *text);
/* Left out if NULL or empty, or 0. */
void reply_string_if(struct reply *reply, const char *key, const char *text);
void reply_uint_if(struct reply *reply, const char *key, uint64_t value);

void reply_int(struct reply *reply, const char *key, int64_t value);
/* Above INT64_MAX (USEC_INFINITY and the like) it is written as INT64_MAX: JSON readers have no
 * more. */
void reply_uint(struct reply *reply, const char *key, uint64_t value);
/* As a string of digits: any 64 bits, which a JSON reader might round. */
void reply_reference(struct reply *reply, const char *key, uint64_t value);
void reply_bool(struct reply *reply, const char *key, bool value);

/* {"encoding": "utf8" or "base64", "data": …}, whichever fits the bytes. */
void reply_payload(struct reply *reply, const char *key, const void *data, size_t size);

/* As it is: the caller knows that it is JSON, or the NUL at the end of a message. */
void reply_raw(struct reply *reply, const char *text, size_t size);

/* To take back what was written since, failure included: for parts that may be left out. */
struct reply_mark {
    size_t size;
    int error;
    bool separate;
};
struct reply_mark reply_mark(const struct reply *reply);
void reply_rewind(struct reply *reply, struct reply_mark mark);
