/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A log on disk: SQLite, each transaction synced before it counts as done. Prepared statements with
 * positional parameters; "s" binds text, "i" a 64-bit number.
 */

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct database {
    sqlite3 *handle;
};

/* Opens or creates the file and runs `schema`. 0, or -EIO with the problem on standard error. */
int database_open(struct database *ret, const char *path, const char *schema);
void database_close(struct database *database);

/*
 * Runs one statement; `types` has the types of the parameters that follow. `row` is called for each
 * selected row (NULL = not needed). Returns the number of selected rows or, if it selects none, of
 * changed rows; or -EIO.
 */
typedef void (*database_row_fn)(sqlite3_stmt *row, void *userdata);
int database_run(struct database *database, const char *sql, database_row_fn row, void *userdata,
                 const char *types, ...);

/* A column as text of at most `size` bytes, including the NUL. */
void database_text(sqlite3_stmt *row, int column, char *ret, size_t size);
