/* SPDX-License-Identifier: MIT */
#include "supervisor/store/row-values.h"

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

int row_read_record(sqlite3_stmt *statement, const struct record *record, void *row)
{
    int column = 0;

    for (size_t i = 0; i < record->n; i++)
        if (record->fields[i].media & MEDIUM_DISK)
            read_field(statement, column++, &record->fields[i], row);
    return column;
}

void row_bind_bytes(struct database *database, sqlite3_stmt *statement, int at, const void *bytes,
                    uint64_t size)
{
    (void)sqlite3_bind_blob64(statement, at, size > 0 ? bytes : "", size, SQLITE_STATIC);
    database->n_bytes += size;
}

const void *row_read_blob(sqlite3_stmt *statement, int column, uint64_t *ret_size)
{
    const void *bytes = sqlite3_column_blob(statement, column);

    *ret_size = (uint64_t)sqlite3_column_bytes(statement, column);
    return bytes ? bytes : "";
}
