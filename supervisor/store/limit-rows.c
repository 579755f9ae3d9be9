/* SPDX-License-Identifier: MIT */
#include "supervisor/store/limit-rows.h"

#include "supervisor/store/row-values.h"
#include <string.h>

#define ROW limit_row
#define LIMIT(F)                                                                                   \
    F(DISK, rate, BELOW(rate, LIMIT_ROW_NONE))                                                     \
    F(DISK, period, BELOW(period, LIMIT_ROW_NONE))                                                 \
    F(DISK, burst, BELOW(burst, LIMIT_ROW_NONE))                                                   \
    F(DISK, running, BELOW(running, LIMIT_ROW_NONE))

const struct record LIMIT_ROW_RECORD = RECORD("limit-row", LIMIT);

int limit_rows_put(struct database *database, const char *name, const struct limit_row *row)
{
    sqlite3_stmt *statement =
        database_query(database, "INSERT OR REPLACE INTO limits (" LIMIT(
                                     ROW_COLUMN) "name) VALUES (" LIMIT(ROW_PARAMETER) "?)");
    const int at = row_bind_record(statement, 1, &LIMIT_ROW_RECORD, row);

    row_bind_text(statement, at, name, strlen(name));
    return database_step(database, statement);
}

int limit_rows_remove(struct database *database, const char *name)
{
    sqlite3_stmt *statement = database_query(database, "DELETE FROM limits WHERE name = ?");

    row_bind_text(statement, 1, name, strlen(name));
    return database_step(database, statement);
}

int limit_rows_scan(struct database *database, limit_row_fn fn, void *userdata)
{
    sqlite3_stmt *statement =
        database_query(database, "SELECT " LIMIT(ROW_COLUMN) "name FROM limits");
    int r;

    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        struct limit_row row = {0};
        const int at = row_read_record(statement, 0, &LIMIT_ROW_RECORD, &row);
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
