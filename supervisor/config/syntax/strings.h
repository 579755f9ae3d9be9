/* SPDX-License-Identifier: MIT */
#pragma once

/* Strings of the configuration: lists, vectors and paths. A list grows, and finds a string by its
 * name, which ends before its first '=', in constant time. */

#include "shared/base/cleanup.h"
#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stddef.h>

#define _cleanup_strings_ _cleanup_(strings_clear)

/* The longest list of a configuration. */
#define STRINGS_MAX 4096

/* Appends a copy. Returns 0 or -ENOMEM (then nothing has changed). */
int strings_append(struct config_strings *list, const char *text);

/* Replaces the string of the same name by a copy, or appends it. Returns as above. */
int strings_set(struct config_strings *list, const char *text);

/* Whether a string of the same name was added by strings_set(). */
bool strings_has(const struct config_strings *list, const char *text);

/* Frees the strings; the list is empty then. */
void strings_clear(struct config_strings *list);

/* ---- NULL-terminated vectors that own their strings (config_strv); NULL is an empty one ---- */

#define _cleanup_strv_ _cleanup_(strv_cleanup)

/* Without the NULL at the end. */
size_t strv_length(char *const *strings);

/* Appends a copy, in time linear in the length. Returns 0 or -ENOMEM (then nothing has changed). */
int strv_append(config_strv *strings, const char *text);
/* Appends the name of the file NAME.suffix; `strings` NULL = it is not wanted. */
int strv_append_file(config_strv *strings, const char *name, const char *suffix);

/* Copies. Returns 0 or -ENOMEM. */
int strv_copy(config_strv *ret, char *const *strings);

/* Whether both have the same strings in the same order. */
bool strv_equal(char *const *a, char *const *b);

/* Returns NULL. */
config_strv strv_free(config_strv strings);

static inline void strv_cleanup(config_strv *strings)
{
    strv_free(*strings);
}

/* ---- paths ---- */

/* "DIRECTORY/NAMESUFFIX", owned by the caller; NULL = out of memory. */
char *path_join(const char *directory, const char *name, const char *suffix);
/* Like path_join(), but with a directory of `size` characters. */
char *path_join_n(const char *directory, size_t size, const char *name, const char *suffix);

/* Makes one of several slashes, and removes those at the end, in place. */
void path_simplify(char *path);
/* Whether "." or ".." is part of a path. */
bool path_has_dots(const char *path);
