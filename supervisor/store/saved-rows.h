/* SPDX-License-Identifier: MIT */
#pragma once

/* The rows of saved/saved-row.h. They are in the database of an upgrade only. Adding a row to the
 * database takes as long as all else about it, so rows of a kind are put together into packs. */

#include "supervisor/store/database.h"
#include "supervisor/succession/saved-row.h"

#define SAVED_PACKS_MAX 32

struct saved_pack {
    const char *kind;
    struct saved_writer rows;
    uint64_t n;
};

/* Valid with the database only. */
struct saved_rows {
    struct database *database;
    struct saved_pack packs[SAVED_PACKS_MAX];
    size_t n_packs;
};

/* Makes the table, unless it is there. Returns 0 or -errno. */
int saved_rows_create(struct database *database);

/* Adds a row; `kind` is static, `payload` NULL = none. Returns 0 or -errno. */
int saved_rows_add(struct saved_rows *rows, const char *kind, const struct saved_writer *row,
                   const struct payload *payload);
/* Writes what was added, in the caller's transaction. Returns 0 or -errno. */
int saved_rows_flush(struct saved_rows *rows);
/* Drops what is not written. Idempotent. */
void saved_rows_deinit(struct saved_rows *rows);

/* Reads a row, which is valid during the call. Returns 0; or -errno, which refuses the row. */
typedef int (*saved_row_fn)(void *userdata, struct saved_reader *row);

/* Calls `fn` for the rows of a kind, in the order in which they were added, and counts those that
 * are refused in `*n_refused`. Returns 0 or -errno of the database. */
int saved_rows_scan(struct database *database, const char *kind, saved_row_fn fn, void *userdata,
                    uint64_t *n_refused);
