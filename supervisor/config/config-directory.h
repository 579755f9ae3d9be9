/* SPDX-License-Identifier: MIT */
#pragma once

/* The files of a configuration directory, by their suffixes. */

#include "supervisor/config/config.h"

/* Whether `text` ends with the suffix and is longer. */
bool config_ends_with(const char *text, const char *suffix);

/* Lists the entries with that suffix, sorted, without hidden ones. Returns 0 or -errno. */
int config_list(const char *directory, const char *suffix, config_strv *ret);

/*
 * Like config_list(), but without the suffix, sorted without it: "a" before "a-b", but "a-b.group"
 * before "a.group".
 */
int config_list_stems(const char *directory, const char *suffix, config_strv *ret);

/*
 * Calls `read` for DIRECTORY/NAMESUFFIX of each name, until it fails; -ENOENT becomes a problem.
 * Returns 0 or -errno.
 */
int config_each_file(const char *directory, const config_strv names, const char *suffix,
                     struct config_problems *problems,
                     int (*read)(void *userdata, const char *path), void *userdata);

/* The file's name without the suffix, which it has. Owned by the caller; NULL = out of memory. */
char *config_stem(const char *path, const char *suffix);
