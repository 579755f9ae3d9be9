/* SPDX-License-Identifier: MIT */
#pragma once

/* The address of an attached client: '@' and its number, which counts from 1. */

#include <stdbool.h>
#include <stdint.h>

#define CLIENT_NAME_SIZE  24 /* with the NUL */
#define CLIENT_NUMBER_MAX ((uint64_t)INT64_MAX / 2)

/* Writes "@" and the number. */
void client_name_write(char ret[CLIENT_NAME_SIZE], uint64_t number);

/* Returns whether client_name_write() can have written it, with a number from 1 to
 * CLIENT_NUMBER_MAX; then sets `*ret`. */
bool client_name_read(const char *name, uint64_t *ret);
