/* SPDX-License-Identifier: MIT */
#pragma once

/* The files of a configuration directory, by their suffixes. */

#include "supervisor/config/config.h"

/* Whether `text` ends with the suffix and is longer. */
bool config_ends_with(const char *text, const char *suffix);

/* Lists the entries with that suffix, sorted, without hidden ones. Returns 0 or -errno. */
int config_list(const char *directory, const char *suffix, config_strv *ret);

/*
 * The same without the suffix, sorted without it: "a-b.group" comes before "a.group", but "a"
 * before "a-b".
 */
int config_list_stems(const char *directory, const char *suffix, config_strv *ret);

/* DIRECTORY/NAMESUFFIX. 0 or -ENOMEM. */
int config_join(char **ret, const char *directory, const char *name, const char *suffix);
