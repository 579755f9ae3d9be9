/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads parameters of calls from the command line. */

#include <jansson.h>

struct invocation;

/*
 * Reads the payload: --data, --file, or "-" for standard input. `operand` is "-" or NULL. The
 * caller frees `*ret`, which ends with a NUL. Prints errors and returns an exit status.
 */
int input_payload(const struct invocation *invocation, const char *operand, char **ret,
                  size_t *ret_size);

/* Whether a payload fits into a request. Prints an error and returns an exit status. */
int input_check_size(size_t size);

/*
 * Reads the id of a timer or dead letter. The caller owns `*ret`, an object with the member "id",
 * or NULL when out of memory. Prints errors and returns an exit status.
 */
int input_id(const struct invocation *invocation, const char *operand, json_t **ret);
