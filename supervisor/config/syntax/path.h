/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* "DIRECTORY/NAMESUFFIX", owned by the caller; NULL = out of memory. */
char *path_join(const char *directory, const char *name, const char *suffix);
/* The same with a directory of `size` characters. */
char *path_join_n(const char *directory, size_t size, const char *name, const char *suffix);
