/* SPDX-License-Identifier: MIT */
#pragma once

/* What a sandbox hides from the workers of a group. */

#include <stdbool.h>
#include <stddef.h>

/* Whether this worker has a root of its own, with little of the machine's files: PrivateRoot=yes,
 * Profile=strict. */
bool hidden_has_private_root(void);

/* Whether `text`, which need not end with a NUL byte, is an absolute path that is not in such a
 * root. */
bool hidden_is_path(const void *text, size_t size);
