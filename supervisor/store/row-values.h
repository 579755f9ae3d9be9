/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between *-rows.c: values of rows. Statements may be NULL, as those of
 * database_query(): nothing happens then.
 *
 * The columns of a table of the database are the fields of a record that are kept on disk, in their
 * order. From the list of the fields, FIELDS(F), come the names of the columns and the parameters:
 * FIELDS(ROW_COLUMN), FIELDS(ROW_PARAMETER).
 */

#include "supervisor/store/database.h"
#include "supervisor/succession/record.h"
#include <stddef.h>
#include <stdint.h>

/* The options that a submitter chose. */
#define ROW_ASKED(F)                                                                               \
    F(STORED, asked_retries, OPTIONAL(asked.max_retries, PROTOCOL_DEFAULT_RETRIES))                \
    F(STORED, asked_timeout, OPTIONAL(asked.timeout, PROTOCOL_DEFAULT_USEC))                       \
    F(STORED, asked_backoff_min, OPTIONAL(asked.backoff_min, PROTOCOL_DEFAULT_USEC))               \
    F(STORED, asked_backoff_max, OPTIONAL(asked.backoff_max, PROTOCOL_DEFAULT_USEC))               \
    F(STORED, asked_priority, OPTIONAL(asked.priority, PROTOCOL_DEFAULT_PRIORITY))                 \
    F(STORED, asked_cost, OPTIONAL(asked.cost, 0))

/* Make "column, ", "?, " and "column = ?, " from a field of the list. */
#define ROW_COLUMN(kept, column, ...)     ROW_ON_DISK_##kept(#column ", ")
#define ROW_PARAMETER(kept, column, ...)  ROW_ON_DISK_##kept("?, ")
#define ROW_ASSIGNMENT(kept, column, ...) ROW_ON_DISK_##kept(#column " = ?, ")
#define ROW_ON_DISK_ALL(text)             text
#define ROW_ON_DISK_STORED(text)          text
#define ROW_ON_DISK_DISK(text)            text
#define ROW_ON_DISK_KEPT(text)
#define ROW_ON_DISK_UPGRADE(text)
#define ROW_ON_DISK_MEMORY(text)

/* Binds the columns of `row` to the parameters from `at` on, which count from 1. Returns the next
 * parameter. */
int row_bind_record(sqlite3_stmt *statement, int at, const struct record *record, const void *row);
/* Fills in the first columns. Text is borrowed until the next step, and not NULL. Returns the next
 * column. */
int row_read_record(sqlite3_stmt *statement, const struct record *record, void *row);

/* Binds borrowed text; NULL if it is empty. */
void row_bind_text(sqlite3_stmt *statement, int at, const char *text, size_t size);
void row_bind(sqlite3_stmt *statement, int at, uint64_t value);

/* Binds borrowed bytes as a blob, and counts them. */
void row_bind_bytes(struct database *database, sqlite3_stmt *statement, int at, const void *bytes,
                    uint64_t size);

/* Borrowed until the next step, and not NULL. */
const void *row_read_blob(sqlite3_stmt *statement, int column, uint64_t *ret_size);
