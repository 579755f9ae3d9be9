/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads members of replies. A member that is absent or has another type reads as a harmless
 * default.
 */

#include "shared/base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns an enum that people write with hyphens, "no-match", for a call: "no_match". NULL if
 * `text` is NULL. */
json_t *field_enum_new(const char *text);

/* A time for json_pack("o*"), which leaves it out if it is 0; infinity becomes -1. */
json_t *field_given(usec_t time);

/* The date `span` ago, for json_pack("o*"), which leaves it out if `span` is 0. It is 1 at least: 0
 * would mean no bound. */
json_t *field_ago(usec_t span);

/* Text is borrowed from the object. The comment at each line shows the default. */
const char *field_text(const json_t *object, const char *name);          /* "" */
bool field_has(const json_t *object, const char *name);                  /* present and not null */
bool field_is(const json_t *object, const char *name, const char *text); /* false */
bool field_true(const json_t *object, const char *name);                 /* false */
int64_t field_int(const json_t *object, const char *name);               /* 0 */
uint64_t field_count(const json_t *object, const char *name); /* 0, also for negative counts */
usec_t field_usec(const json_t *object, const char *name);    /* 0 */

/* A Payload: text or base64. */

/* NULL when out of memory. */
json_t *field_payload_new(const void *data, size_t size);

/*
 * Decodes the Payload in the member `name`. The caller frees `*ret`, which ends with a NUL. Returns
 * 0 (`*ret` is NULL if the member is absent), -EPROTO or -ENOMEM.
 */
int field_payload(const json_t *object, const char *name, char **ret, size_t *ret_size);
