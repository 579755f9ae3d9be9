/* SPDX-License-Identifier: MIT */
#include "supervisor/store/setting-rows.h"

#include "supervisor/store/row-values.h"
#include <string.h>

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
    .bounds = true,
};

int setting_rows_put(struct database *database, const struct setting_rows *rows, const char *name,
                     const struct limit_row *row)
{
    sqlite3_stmt *statement = database_query(database, row ? rows->put : rows->remove);
    const int at = row && rows->bounds ? row_bind_record(statement, 1, &LIMIT_ROW_RECORD, row) : 1;

    row_bind_text(statement, at, name, strlen(name));
    return database_step(database, statement);
}

int setting_rows_scan(struct database *database, const struct setting_rows *rows, setting_row_fn fn,
                      void *userdata)
{
    sqlite3_stmt *statement = database_query(database, rows->get);
    int r;

    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        struct limit_row row = {0};
        const int at = rows->bounds ? row_read_record(statement, 0, &LIMIT_ROW_RECORD, &row) : 0;
        const char *name = (const char *)sqlite3_column_text(statement, at);
        const int stop =
            name && record_is_sound(&LIMIT_ROW_RECORD, &row) ? fn(userdata, name, &row) : 0;

        if (stop != 0) {
            (void)sqlite3_reset(statement);
            return stop;
        }
    }
    return r;
}
