/* SPDX-License-Identifier: MIT */
#pragma once

/* Base64 as in RFC 4648, with padding and without line breaks. */

#include <stddef.h>

/* Returns the number of characters that encode `size` bytes, without a NUL. */
size_t base64_size(size_t size);

/* Writes base64_size(size) characters, no NUL. */
void base64_encode(char *to, const void *from, size_t size);

/* Decodes; `to` has room for size / 4 * 3 bytes. 0 with `*ret_size`, or -EINVAL: a foreign
 * character, a length that is not a multiple of four, missing or misplaced padding, or unused bits
 * that are not zero. */
int base64_decode(void *to, size_t *ret_size, const char *text, size_t size);
