/* SPDX-License-Identifier: MIT */
#include "supervisor/store/setting-rows.h"

#include "supervisor/store/row-values.h"
#include <assert.h>
#include <stddef.h>
#include <string.h>

#define SETTING_ROW_MAX 512 /* bytes of any row */

#define ROW limit_row
#define LIMIT(F)                                                                                   \
    F(DISK, rate, BELOW(rate, LIMIT_ROW_NONE))                                                     \
    F(DISK, period, BELOW(period, LIMIT_ROW_NONE))                                                 \
    F(DISK, burst, BELOW(burst, LIMIT_ROW_NONE))                                                   \
    F(DISK, running, BELOW(running, LIMIT_ROW_NONE))

const struct record LIMIT_ROW_RECORD = RECORD("limit-row", LIMIT);

const struct setting_rows STOP_ROWS = {
    .what = "which groups stay stopped",
    .put = "INSERT OR IGNORE INTO stopped (name) VALUES (?)",
    .remove = "DELETE FROM stopped WHERE name = ?",
    .get = "SELECT name FROM stopped",
};

const struct setting_rows LIMIT_ROWS = {
    .what = "what was set of limits",
    .put = "INSERT OR REPLACE INTO limits (" LIMIT(ROW_COLUMN) "name) VALUES (" LIMIT(
        ROW_PARAMETER) "?)",
    .remove = "DELETE FROM limits WHERE name = ?",
    .get = "SELECT " LIMIT(ROW_COLUMN) "name FROM limits",
    .record = &LIMIT_ROW_RECORD,
    .size = sizeof(struct limit_row),
};

int setting_rows_put(struct database *database, const struct setting_rows *rows, const char *name,
                     const void *row)
{
    sqlite3_stmt *statement = database_query(database, row ? rows->put : rows->remove);
    int at = 1;

    if (row && rows->record)
        at = row_bind_record(statement, at, rows->record, row);
    if (row && rows->bytes > 0)
        (void)sqlite3_bind_blob(statement, at++, (const uint8_t *)row + rows->bytes,
                                (int)(rows->size - rows->bytes), SQLITE_STATIC);
    row_bind_text(statement, at, name, strlen(name));
    return database_step(database, statement);
}

/* Returns the column behind the row, which is that of the name. */
static int read_row(sqlite3_stmt *statement, const struct setting_rows *rows, uint8_t *row)
{
    const size_t room = rows->size - rows->bytes;
    int column = rows->record ? row_read_record(statement, rows->record, row) : 0;
    const void *bytes;
    uint64_t size;

    if (rows->bytes == 0)
        return column;
    bytes = row_read_blob(statement, column++, &size);
    memcpy(row + rows->bytes, bytes, size < room ? size : room);
    return column;
}

int setting_rows_scan(struct database *database, const struct setting_rows *rows, setting_row_fn fn,
                      void *userdata)
{
    sqlite3_stmt *statement = database_query(database, rows->get);
    _Alignas(max_align_t) uint8_t row[SETTING_ROW_MAX];
    int r;

    assert(rows->size <= sizeof(row));
    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        const char *name;
        int stop;

        memset(row, 0, rows->size);
        name = (const char *)sqlite3_column_text(statement, read_row(statement, rows, row));
        stop = name && (!rows->record || record_is_sound(rows->record, row))
                   ? fn(userdata, name, row)
                   : 0;
        if (stop != 0) {
            (void)sqlite3_reset(statement);
            return stop;
        }
    }
    return r;
}
