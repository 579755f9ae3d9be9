/* SPDX-License-Identifier: MIT */
#pragma once

/* Recognises files that the sandbox of a group hides from its workers. */

#include <stdbool.h>
#include <stddef.h>

/* Returns whether this worker has a private root, which lacks most of the machine's files
 * (PrivateRoot=yes, Profile=strict). */
bool hidden_has_private_root(void);

/* Returns whether `text` (`size` bytes, without a NUL byte at its end) is an absolute path that
 * this worker's private root lacks. */
bool hidden_is_path(const void *text, size_t size);
