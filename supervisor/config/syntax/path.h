/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* "DIRECTORY/NAMESUFFIX", owned by the caller; NULL = out of memory. */
char *path_join(const char *directory, const char *name, const char *suffix);
/* Like path_join(), but with a directory of `size` characters. */
char *path_join_n(const char *directory, size_t size, const char *name, const char *suffix);

/* Makes one of several slashes, and removes those at the end, in place. */
void path_simplify(char *path);
/* Whether "." or ".." is part of a path. */
bool path_has_dots(const char *path);
