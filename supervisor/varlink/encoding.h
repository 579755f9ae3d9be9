/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bytes as JSON can carry them: strict UTF-8 and base64 (RFC 4648, with padding, nothing else
 * accepted).
 */

#include <stdbool.h>
#include <stddef.h>

/* Valid UTF-8 without NUL. The empty text is one. */
bool encoding_is_text(const void *data, size_t size);

/* Characters that `size` bytes take in base64, without a NUL. */
size_t encoding_base64_size(size_t size);

/* Writes encoding_base64_size(size) characters, no NUL. */
void encoding_base64(char *to, const void *from, size_t size);

/*
 * Decodes; `to` has room for size / 4 * 3 bytes. 0 with `*ret_size`, or -EINVAL: a foreign
 * character, a length that is no multiple of four, missing or misplaced padding, unused bits that
 * are not zero.
 */
int encoding_from_base64(void *to, size_t *ret_size, const char *text, size_t size);
