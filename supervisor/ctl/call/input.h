/* SPDX-License-Identifier: MIT */
#pragma once

/* The payload that the command line names: --data, --file, or "-" for standard input. */

#include <stddef.h>

struct invocation;

/*
 * `operand`: "-" or NULL. The bytes are the caller's to free, a NUL behind them. An exit status,
 * the failure having been told.
 */
int input_payload(const struct invocation *invocation, const char *operand, char **ret,
                  size_t *ret_size);
