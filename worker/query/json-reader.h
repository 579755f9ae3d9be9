/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Finds things in JSON text that ends with a NUL byte, without a copy of it. A "value" is a pointer
 * to its first character. What is no JSON has no members and no elements.
 */

#include <stddef.h>
#include <stdint.h>

/* What follows a value; NULL when it does not end. */
const char *json_reader_skip(const char *value);

/* A member of an object, by its path ("job", "result.data"); NULL when there is none. */
const char *json_reader_member(const char *object, const char *path);

/* The first element of an array, and the one after an element; NULL when there is none. */
const char *json_reader_first(const char *array);
const char *json_reader_next(const char *element);

/*
 * A string as UTF-8 with a NUL at the end, into `ret`, which has room for as many bytes as the
 * value takes. Its length, or -EINVAL for what is no string or has a NUL in it.
 */
int json_reader_string(const char *value, char *ret);

/* 0, or -EINVAL for what is no whole number. */
int json_reader_number(const char *value, int64_t *ret);
