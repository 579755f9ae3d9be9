/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads JSON text (RFC 8259) that ends with a NUL byte, where it is: nothing is copied or
 * allocated. A value is a pointer to its first character. All functions may be called with any
 * text. Malformed text has no members and no elements; json_text_check() says whether it is
 * malformed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Objects and arrays within each other that json_text_check() accepts. */
#define JSON_TEXT_DEPTH_MAX 32

/* Returns whether `text`, of `size` bytes without its NUL, is JSON in UTF-8 with at most
 * `max_values` values, including members and elements. */
bool json_text_check(const char *text, size_t size, size_t max_values);

/* Returns what follows a value; NULL if it does not end. */
const char *json_text_skip(const char *value);

/* Returns a member of an object by its path ("job", "result.data"), or NULL. */
const char *json_text_member(const char *object, const char *path);

/* Return the first element of an array or the name of the first member of an object, and what
 * follows an element or a member's value, or NULL. */
const char *json_text_first(const char *container);
const char *json_text_next(const char *value);
/* Returns the value of a member by its name, which is also a value; NULL if there is none. */
const char *json_text_value(const char *name);

/*
 * Writes a string as UTF-8 with a NUL to `ret`, which has room for as many bytes as the value has.
 * Returns its length, or -EINVAL if it is no string.
 */
int json_text_string(const char *value, char *ret);

/* Returns 0, or -EINVAL if it is no whole number of 64 bits. */
int json_text_number(const char *value, int64_t *ret);
