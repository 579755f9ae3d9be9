/* SPDX-License-Identifier: MIT */
#include "supervisor/store/saved-rows.h"

#include "supervisor/channel/payload.h"
#include "supervisor/store/row-values.h"
#include <string.h>

int saved_rows_create(struct database *database)
{
    static const char sql[] = "CREATE TABLE IF NOT EXISTS saved (number INTEGER PRIMARY KEY,"
                              " kind TEXT NOT NULL, fields BLOB NOT NULL, payload BLOB NOT NULL)";

    return database_step(database, database_query(database, sql));
}

int saved_rows_add(struct database *database, const char *kind, const struct saved_writer *row,
                   const struct payload *payload)
{
    sqlite3_stmt *statement =
        database_query(database, "INSERT INTO saved (kind, fields, payload) VALUES (?1, ?2, ?3)");

    row_bind_text(statement, 1, kind, strlen(kind));
    (void)sqlite3_bind_blob64(statement, 2, row->size > 0 ? (const void *)row->bytes : "",
                              row->size, SQLITE_STATIC);
    return row_step_with_bytes(database, statement, 3, payload ? payload_data(payload) : "",
                               payload ? payload->fd : -1, payload ? payload->size : 0);
}

int saved_rows_scan(struct database *database, const char *kind, saved_row_fn fn, void *userdata,
                    uint64_t *n_refused)
{
    sqlite3_stmt *statement = database_query(
        database, "SELECT fields, payload FROM saved WHERE kind = ?1 ORDER BY number");
    int r;

    row_bind_text(statement, 1, kind, strlen(kind));
    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        uint64_t size, payload_size;
        const uint8_t *fields = row_read_bytes(statement, 0, &size);
        struct saved_reader row = {.at = fields, .end = fields + size};

        row.payload = row_read_bytes(statement, 1, &payload_size);
        row.payload_size = (size_t)payload_size;
        if (fn(userdata, &row) < 0)
            (*n_refused)++;
    }
    (void)sqlite3_reset(statement);
    return r;
}
