/* SPDX-License-Identifier: MIT */
#include "supervisor/store/row-values.h"

#include <errno.h>
#include <sys/mman.h>

/* SQLite's own limit is 1e9 bytes for a row. */
#define BYTES_MAX ((uint64_t)900000000)

void row_bind_text(sqlite3_stmt *statement, int at, const char *text, size_t size)
{
    (void)sqlite3_bind_text(statement, at, size > 0 ? text : NULL, (int)size, SQLITE_STATIC);
}

void row_bind(sqlite3_stmt *statement, int at, uint64_t value)
{
    (void)sqlite3_bind_int64(statement, at, (int64_t)value);
}

void row_bind_unless(sqlite3_stmt *statement, int at, uint64_t value, uint64_t default_value)
{
    if (value == default_value)
        (void)sqlite3_bind_null(statement, at);
    else
        row_bind(statement, at, value);
}

void row_bind_options(sqlite3_stmt *statement, int at, const struct job_options *options)
{
    row_bind_unless(statement, at, options->max_retries, PROTOCOL_DEFAULT_RETRIES);
    row_bind_unless(statement, at + 1, options->timeout, PROTOCOL_DEFAULT_USEC);
    row_bind_unless(statement, at + 2, options->backoff_min, PROTOCOL_DEFAULT_USEC);
    row_bind_unless(statement, at + 3, options->backoff_max, PROTOCOL_DEFAULT_USEC);
    row_bind_unless(statement, at + 4, options->priority, PROTOCOL_DEFAULT_PRIORITY);
}

int row_step_with_bytes(struct database *database, sqlite3_stmt *statement, int at,
                        const void *data, int fd, uint64_t size)
{
    void *map = NULL;
    int r;

    if (size > BYTES_MAX)
        return -E2BIG;
    if (!data && size > 0) {
        map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
            return -errno;
    }
    (void)sqlite3_bind_blob64(statement, at, map ? map : size > 0 ? data : "", size, SQLITE_STATIC);
    r = database_step(database, statement);
    if (map)
        (void)munmap(map, size);
    return r;
}

uint64_t row_read_or(sqlite3_stmt *statement, int column, uint64_t default_value)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? default_value
               : (uint64_t)sqlite3_column_int64(statement, column);
}

const char *row_read_text(sqlite3_stmt *statement, int column, uint32_t *ret_size)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);

    *ret_size = (uint32_t)sqlite3_column_bytes(statement, column);
    return text ? text : "";
}

const void *row_read_bytes(sqlite3_stmt *statement, int column, uint64_t *ret_size)
{
    const void *bytes = sqlite3_column_blob(statement, column);

    *ret_size = (uint64_t)sqlite3_column_bytes(statement, column);
    return bytes ? bytes : "";
}

struct job_options row_read_options(sqlite3_stmt *statement, int column)
{
    return (struct job_options){
        .max_retries = (uint32_t)row_read_or(statement, column, PROTOCOL_DEFAULT_RETRIES),
        .timeout = row_read_or(statement, column + 1, PROTOCOL_DEFAULT_USEC),
        .backoff_min = row_read_or(statement, column + 2, PROTOCOL_DEFAULT_USEC),
        .backoff_max = row_read_or(statement, column + 3, PROTOCOL_DEFAULT_USEC),
        .priority = (uint8_t)row_read_or(statement, column + 4, PROTOCOL_DEFAULT_PRIORITY),
    };
}
