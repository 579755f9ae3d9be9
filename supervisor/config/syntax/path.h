/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names of files.
 */

#include <stddef.h>

/* "DIRECTORY/NAMESUFFIX", the directory's name being `directory_size` characters. The caller's;
 * NULL = no memory. */
char *path_join(const char *directory, size_t directory_size, const char *name, const char *suffix);
