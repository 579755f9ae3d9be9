/* SPDX-License-Identifier: MIT */
#pragma once

/* Members of replies, with something harmless in place of what is absent or of another type. */

#include "shared/base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text is borrowed from the object; the comments say what stands for what is absent. */
const char *field_text(const json_t *object, const char *name);          /* "" */
bool field_has(const json_t *object, const char *name);                  /* there, and not null */
bool field_is(const json_t *object, const char *name, const char *text); /* false */
bool field_true(const json_t *object, const char *name);                 /* false */
int64_t field_int(const json_t *object, const char *name);               /* 0 */
uint64_t field_count(const json_t *object, const char *name); /* 0; negative counts are 0 too */
usec_t field_usec(const json_t *object, const char *name);    /* 0 */

/* A Payload: text or base64. */

/* NULL when out of memory. */
json_t *field_payload_new(const void *data, size_t size);

/*
 * The bytes of object's member `name`, the caller's to free, with a NUL after them. 0 (`*ret` NULL
 * if there is none), -EPROTO or -ENOMEM.
 */
int field_payload(const json_t *object, const char *name, char **ret, size_t *ret_size);
