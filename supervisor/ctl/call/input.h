/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads the payload given on the command line: --data, --file, or "-" for standard input. */

#include <stddef.h>

struct invocation;

/*
 * `operand` is "-" or NULL. The caller frees `*ret`, which ends with a NUL. Prints errors and
 * returns an exit status.
 */
int input_payload(const struct invocation *invocation, const char *operand, char **ret,
                  size_t *ret_size);
