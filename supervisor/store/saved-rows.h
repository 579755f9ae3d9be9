/* SPDX-License-Identifier: MIT */
#pragma once

/* The rows of saved/saved-row.h. They are in the database of an upgrade only. */

#include "supervisor/saved/saved-row.h"
#include "supervisor/store/database.h"

/* Makes the table, unless it is there. Returns 0 or -errno. */
int saved_rows_create(struct database *database);

/* Adds a row; `payload` NULL = none. Returns 0 or -errno. */
int saved_rows_add(struct database *database, const char *kind, const struct saved_writer *row,
                   const struct payload *payload);

/* Reads a row, which is valid during the call. Returns 0; or -errno, which refuses the row. */
typedef int (*saved_row_fn)(void *userdata, struct saved_reader *row);

/* Calls `fn` for the rows of a kind, in the order in which they were added, and counts those that
 * are refused in `*n_refused`. Returns 0 or -errno of the database. */
int saved_rows_scan(struct database *database, const char *kind, saved_row_fn fn, void *userdata,
                    uint64_t *n_refused);
