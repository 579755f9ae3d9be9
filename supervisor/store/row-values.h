/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between *-rows.c: values of rows. Statements may be NULL, as those of
 * database_query(): nothing happens then.
 *
 * A macro FIELDS(F) lists the fields of a kind of row, as F(NUMBER, column, member), F(TEXT, …) or
 * F(OPTIONAL, column, member, value that is stored as NULL). The names of the columns, the
 * parameters and the table of the fields are made from it. ROW is the name of the struct.
 */

#include "shared/protocol/job-options.h"
#include "supervisor/saved/saved-row.h"
#include "supervisor/store/database.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_field {
    uint16_t at;      /* offset of the member */
    uint16_t size_at; /* text: offset of its size, a uint32_t */
    uint8_t size;     /* of a number: 1, 4 or 8 bytes; 0 = text */
    bool is_bool, is_signed;
    bool optional; /* `absent` is stored as NULL, which takes no room */
    uint64_t absent;
};

#define ROW_MEMBER(member) ((struct ROW *)NULL)->member
#define ROW_BASIC(member)                                                                          \
    .at = offsetof(struct ROW, member), .size = sizeof(ROW_MEMBER(member)),                        \
    .is_bool = _Generic(ROW_MEMBER(member), bool                                                   \
                        : true, default                                                            \
                        : false),                                                                  \
    .is_signed = _Generic(ROW_MEMBER(member), int32_t                                              \
                          : true, default                                                          \
                          : false)

/* The kinds of fields. */
#define ROW_NUMBER(member)          {ROW_BASIC(member)},
#define ROW_OPTIONAL(member, value) {ROW_BASIC(member), .optional = true, .absent = (value)},
#define ROW_TEXT(member)                                                                           \
    {.at = offsetof(struct ROW, member), .size_at = offsetof(struct ROW, member##_size)},

/* The options that a submitter chose. */
#define ROW_ASKED(F)                                                                               \
    F(OPTIONAL, asked_retries, asked.max_retries, PROTOCOL_DEFAULT_RETRIES)                        \
    F(OPTIONAL, asked_timeout, asked.timeout, PROTOCOL_DEFAULT_USEC)                               \
    F(OPTIONAL, asked_backoff_min, asked.backoff_min, PROTOCOL_DEFAULT_USEC)                       \
    F(OPTIONAL, asked_backoff_max, asked.backoff_max, PROTOCOL_DEFAULT_USEC)                       \
    F(OPTIONAL, asked_priority, asked.priority, PROTOCOL_DEFAULT_PRIORITY)

/* Make "column, ", "?, " and an entry of a table of row_field from a field of the list. */
#define ROW_COLUMN(kind, column, ...)    #column ", "
#define ROW_PARAMETER(kind, column, ...) "?, "
#define ROW_FIELD(kind, column, ...)     ROW_##kind(__VA_ARGS__)

/* Binds the fields of `row` to the parameters from `at` on, which count from 1. */
void row_bind_fields(sqlite3_stmt *statement, int at, const struct row_field *fields, size_t n,
                     const void *row);
/* Fills in the fields from the columns from `column` on, which count from 0. Text is borrowed until
 * the next step, and not NULL. */
void row_read_fields(sqlite3_stmt *statement, int column, const struct row_field *fields, size_t n,
                     void *row);

/* Write and read fields in a row of an upgrade. New fields come at the end of a table: one that the
 * row does not have is absent, or 0. */
void row_put_fields(struct saved_writer *writer, const struct row_field *fields, size_t n,
                    const void *row);
void row_get_fields(struct saved_reader *reader, const struct row_field *fields, size_t n,
                    void *row);

/* Binds borrowed text; NULL if it is empty. */
void row_bind_text(sqlite3_stmt *statement, int at, const char *text, size_t size);
void row_bind(sqlite3_stmt *statement, int at, uint64_t value);

/* Binds `size` bytes as a blob and runs the statement. They are at `data`, or if that is NULL in
 * the file `fd`. Returns like database_step(), or -E2BIG, -ENOMEM or the -errno of reading `fd`:
 * then the transaction can continue. */
int row_step_with_bytes(struct database *database, sqlite3_stmt *statement, int at,
                        const void *data, int fd, uint64_t size);
/* Like row_step_with_bytes(), but for the last column of a row that may name a file with the bytes
 * (database-files.h). Also returns like side_files_write(). */
int row_step_with_blob(struct database *database, sqlite3_stmt *statement, int at,
                       struct side_file file, const void *data, int fd, uint64_t size);
/* In SQL: the size of such a column. */
#define ROW_BLOB_SIZE(column)                                                                      \
    "CASE typeof(" column ") WHEN 'integer' THEN " column " ELSE length(" column ") END"
/* Reads it. `*ret` is borrowed until the next step or reading, and not NULL if that succeeds.
 * Returns as side_files_read(). */
int row_read_blob(struct database *database, sqlite3_stmt *statement, int column,
                  struct side_file file, const void **ret, uint64_t *ret_size);

/* Borrowed until the next step, and not NULL. */
const void *row_read_bytes(sqlite3_stmt *statement, int column, uint64_t *ret_size);
