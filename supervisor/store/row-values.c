/* SPDX-License-Identifier: MIT */
#include "supervisor/store/row-values.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void row_bind_text(sqlite3_stmt *statement, int at, const char *text, size_t size)
{
    (void)sqlite3_bind_text(statement, at, size > 0 ? text : NULL, (int)size, SQLITE_STATIC);
}

void row_bind(sqlite3_stmt *statement, int at, uint64_t value)
{
    (void)sqlite3_bind_int64(statement, at, (int64_t)value);
}

static const char *row_read_text(sqlite3_stmt *statement, int column, uint32_t *ret_size)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);

    *ret_size = (uint32_t)sqlite3_column_bytes(statement, column);
    return text ? text : "";
}

static void bind_field(sqlite3_stmt *statement, int at, const struct field *field, const void *row)
{
    const void *member = (const uint8_t *)row + field->at;
    const void *size = (const uint8_t *)row + field->size_at;

    if (field->type == FIELD_TEXT)
        row_bind_text(statement, at, *(const char *const *)member, *(const uint32_t *)size);
    else if (field->optional && field_load(field, row) == field->absent)
        (void)sqlite3_bind_null(statement, at);
    else
        row_bind(statement, at, field_load(field, row));
}

static void read_field(sqlite3_stmt *statement, int column, const struct field *field, void *row)
{
    void *member = (uint8_t *)row + field->at;
    void *size = (uint8_t *)row + field->size_at;

    if (field->type == FIELD_TEXT)
        *(const char **)member = row_read_text(statement, column, size);
    else if (field->optional && sqlite3_column_type(statement, column) == SQLITE_NULL)
        field_store(field, row, field->absent);
    else
        field_store(field, row, (uint64_t)sqlite3_column_int64(statement, column));
}

int row_bind_record(sqlite3_stmt *statement, int at, const struct record *record, const void *row)
{
    for (size_t i = 0; i < record->n; i++)
        if (record->fields[i].media & MEDIUM_DISK)
            bind_field(statement, at++, &record->fields[i], row);
    return at;
}

int row_read_record(sqlite3_stmt *statement, int column, const struct record *record, void *row)
{
    for (size_t i = 0; i < record->n; i++)
        if (record->fields[i].media & MEDIUM_DISK)
            read_field(statement, column++, &record->fields[i], row);
    return column;
}

/* Reads them from the file into `*ret`, which the caller owns. Does not map the file: that would
 * take memory for holes that a worker left in it. */
static int read_file(const struct row_bytes *bytes, char **ret)
{
    _cleanup_free_ char *buffer = malloc(bytes->size);

    if (!buffer)
        return -ENOMEM;
    for (uint64_t done = 0; done < bytes->size;) {
        const ssize_t n =
            pread(bytes->fd, buffer + done, bytes->size - done, (off_t)(bytes->offset + done));

        if (n <= 0)
            return n < 0 ? -errno : -EPROTO;
        done += (uint64_t)n;
    }
    *ret = TAKE_PTR(buffer);
    return 0;
}

int row_step_with_blob(struct database *database, sqlite3_stmt *statement, int at,
                       const struct row_bytes *bytes)
{
    _cleanup_free_ char *read = NULL;
    const char *data = bytes->size > 0 ? bytes->data : "";
    int r = data ? 0 : read_file(bytes, &read);

    if (r < 0)
        return r;
    (void)sqlite3_bind_blob64(statement, at, read ? read : data + bytes->offset, bytes->size,
                              SQLITE_STATIC);
    return database_step(database, statement);
}

const void *row_read_blob(sqlite3_stmt *statement, int column, uint64_t *ret_size)
{
    const void *bytes = sqlite3_column_blob(statement, column);

    *ret_size = (uint64_t)sqlite3_column_bytes(statement, column);
    return bytes ? bytes : "";
}
