/* SPDX-License-Identifier: MIT */
#include "supervisor/store/stop-rows.h"

#include "supervisor/store/row-values.h"
#include <string.h>

int stop_rows_set(struct database *database, const char *name, bool stopped)
{
    sqlite3_stmt *statement =
        database_query(database, stopped ? "INSERT OR IGNORE INTO stopped (name) VALUES (?)"
                                         : "DELETE FROM stopped WHERE name = ?");

    row_bind_text(statement, 1, name, strlen(name));
    return database_step(database, statement);
}

int stop_rows_scan(struct database *database, stop_row_fn fn, void *userdata)
{
    sqlite3_stmt *statement = database_query(database, "SELECT name FROM stopped");
    int r;

    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const int stop = name ? fn(userdata, name) : 0;

        if (stop != 0) {
            (void)sqlite3_reset(statement);
            return stop;
        }
    }
    return r;
}
