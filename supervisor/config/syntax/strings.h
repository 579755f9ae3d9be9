/* SPDX-License-Identifier: MIT */
#pragma once

/* Lists of strings that grow, and find a string by its name, in constant time. A string's name ends
 * before its first '=', or is the whole string. */

#include "shared/base/cleanup.h"
#include "supervisor/config/config.h"

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
