/* SPDX-License-Identifier: MIT */
#pragma once

/* NULL-terminated vectors that own their strings (config_strv). NULL is an empty one. */

#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stddef.h>

#define _cleanup_strv_ _cleanup_(strv_cleanup)

/* Without the NULL at the end. */
size_t strv_length(char *const *strings);

/* Appends a copy, in time linear in the length. Returns 0 or -ENOMEM (then nothing has changed). */
int strv_append(config_strv *strings, const char *text);

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
