/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between *-rows.c: values of rows. Statements may be NULL, as those of
 * database_query(): nothing happens then. */

#include "shared/protocol/job-options.h"
#include "supervisor/store/database.h"
#include <stddef.h>
#include <stdint.h>

/* Binds borrowed text; NULL if it is empty. */
void row_bind_text(sqlite3_stmt *statement, int at, const char *text, size_t size);

void row_bind(sqlite3_stmt *statement, int at, uint64_t value);
/* Binds a number, but NULL, which takes no room, for the default. */
void row_bind_unless(sqlite3_stmt *statement, int at, uint64_t value, uint64_t default_value);

#define ROW_OPTIONS 5
/* Binds the options of a job to ROW_OPTIONS parameters; defaults as NULL. */
void row_bind_options(sqlite3_stmt *statement, int at, const struct job_options *options);

/* Binds `size` bytes as a blob and runs the statement. They are at `data`, or if that is NULL in
 * the file `fd`. Returns as database_step(), or -errno of mmap(2). */
int row_step_with_bytes(struct database *database, sqlite3_stmt *statement, int at,
                        const void *data, int fd, uint64_t size);

/* These read columns, which count from 0. Text is borrowed until the next step, and not NULL. */
uint64_t row_read_or(sqlite3_stmt *statement, int column, uint64_t default_value);
const char *row_read_text(sqlite3_stmt *statement, int column, uint32_t *ret_size);
const void *row_read_bytes(sqlite3_stmt *statement, int column, uint64_t *ret_size);
struct job_options row_read_options(sqlite3_stmt *statement, int column);
