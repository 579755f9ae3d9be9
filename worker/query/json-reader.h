/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Finds values in JSON text that ends with a NUL byte, without copying it. A value is a pointer to
 * its first character. Malformed text has no members and no elements.
 */

#include <stddef.h>
#include <stdint.h>

/* Returns what follows a value; NULL if it does not end. */
const char *json_reader_skip(const char *value);

/* Returns a member of an object by its path ("job", "result.data"), or NULL. */
const char *json_reader_member(const char *object, const char *path);

/* Return the first element of an array, and the one after an element, or NULL. */
const char *json_reader_first(const char *array);
const char *json_reader_next(const char *element);

/*
 * Writes a string as UTF-8 with a NUL to `ret`, which has room for as many bytes as the value has.
 * Returns its length, or -EINVAL if it is no string or contains a NUL.
 */
int json_reader_string(const char *value, char *ret);

/* Returns 0, or -EINVAL if it is no whole number. */
int json_reader_number(const char *value, int64_t *ret);
