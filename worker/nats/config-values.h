/* SPDX-License-Identifier: MIT */
#pragma once

/* What values of the configuration may be. Each function returns whether `value` is one. */

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_URLS_MAX 16u

/* `group`, of which the file is, may be NULL; most functions ignore it. */
typedef bool (*config_valid_fn)(const char *value, const char *group);

bool config_valid_urls(const char *value, const char *group);
bool config_valid_nkey(const char *value, const char *group);
bool config_valid_stream(const char *value, const char *group);
/* For names of groups and consumers, which are parts of subjects. */
bool config_valid_name(const char *value, const char *group);
bool config_valid_filter(const char *value, const char *group);
bool config_valid_machine(const char *value, const char *group);

/* Returns 0, or -EINVAL after it has logged that this is no name of a group. */
int config_check_group(const char *group);

/* Splits a text in place. Returns how many URLs there are, of which the first CONFIG_URLS_MAX are
 * stored. */
size_t config_split_urls(char *text, const char *urls[static CONFIG_URLS_MAX]);
