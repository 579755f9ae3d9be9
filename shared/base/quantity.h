/* SPDX-License-Identifier: MIT */
#pragma once

/* Numbers with units, as people write them in options and configuration. */

#include "shared/base/clock.h"
#include <stddef.h>
#include <stdint.h>

/* Parses the digits at the beginning of the text, without sign or blanks; `*ret_end` is what
 * follows. Returns 0 or -EINVAL. */
int quantity_parse_number(const char *text, uint64_t *ret, const char **ret_end);

/* Parses "64M": bytes, or with K, M, G multiples of 1024. Returns 0 or -EINVAL. */
int quantity_parse_size(const char *text, size_t *ret);

/* Parses "5", "5s", "500ms", "1min". Returns 0 or -EINVAL. */
int quantity_parse_time(const char *text, usec_t *ret);
