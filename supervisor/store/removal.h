/* SPDX-License-Identifier: MIT */
#pragma once

/* The removal of rows that no job in memory stands for any more. */

#include <stdint.h>

struct database;
struct store;

/* Calls `remove` for this number in the storage thread, some time later. It returns 0 or -errno.
 * `store` may be NULL: then nothing is done. Without memory the rows come back at the next
 * start. */
void removal_add(struct store *store, int64_t number,
                 int (*remove)(struct database *database, int64_t number));
