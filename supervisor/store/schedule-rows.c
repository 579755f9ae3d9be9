/* SPDX-License-Identifier: MIT */
#include "supervisor/store/schedule-rows.h"

#include "supervisor/store/row-values.h"
#include <string.h>

/* Later times have years of more than four digits: damage. */
#define SCHEDULE_TIME_MAX UINT64_C(253402300799)

#define ROW schedule_row
#define SCHEDULE(F)                                                                                \
    F(ALL, reached, BELOW(reached, SCHEDULE_TIME_MAX))                                             \
    F(ALL, seen, BELOW(seen, SCHEDULE_TIME_MAX))                                                   \
    F(ALL, waiting, BELOW(waiting, SCHEDULE_TIME_MAX), .optional = true)                           \
    F(ALL, firing, BELOW(firing, SCHEDULE_TIME_MAX), .optional = true)                             \
    F(ALL, paused_at, BELOW(paused_at, SCHEDULE_TIME_MAX), .optional = true)                       \
    F(ALL, resumed_at, BELOW(resumed_at, SCHEDULE_TIME_MAX), .optional = true)                     \
    F(ALL, ended_at, BELOW(ended_at, SCHEDULE_TIME_MAX), .optional = true)                         \
    F(ALL, failures, NUMBER(failures))                                                             \
    F(ALL, pause, BELOW(pause, 2))                                                                 \
    F(KEPT, counts, ARRAY(counts))                                                                 \
    F(KEPT, last, ARRAY(last))                                                                     \
    F(KEPT, skips, ARRAY(skips))

const struct record SCHEDULE_ROW_RECORD = RECORD("schedule-row", SCHEDULE);

/* The arrays are one column: they follow each other. */
#define ARRAYS      offsetof(struct schedule_row, counts)
#define ARRAYS_SIZE (sizeof(struct schedule_row) - ARRAYS)

int schedule_rows_put(struct database *database, const char *name, const struct schedule_row *row)
{
    sqlite3_stmt *statement =
        database_query(database, "INSERT OR REPLACE INTO schedule (" SCHEDULE(
                                     ROW_COLUMN) "slots, name) "
                                                 "VALUES (" SCHEDULE(ROW_PARAMETER) "?, ?)");
    const int at = row_bind_record(statement, 1, &SCHEDULE_ROW_RECORD, row);

    (void)sqlite3_bind_blob(statement, at, (const uint8_t *)row + ARRAYS, (int)ARRAYS_SIZE,
                            SQLITE_STATIC);
    row_bind_text(statement, at + 1, name, strlen(name));
    return database_step(database, statement);
}

int schedule_rows_remove(struct database *database, const char *name)
{
    sqlite3_stmt *statement = database_query(database, "DELETE FROM schedule WHERE name = ?");

    row_bind_text(statement, 1, name, strlen(name));
    return database_step(database, statement);
}

static void read_row(sqlite3_stmt *statement, struct schedule_row *row)
{
    const int column = row_read_record(statement, 0, &SCHEDULE_ROW_RECORD, row);
    const void *bytes;
    uint64_t size;

    bytes = row_read_blob(statement, column, &size);
    memcpy((uint8_t *)row + ARRAYS, bytes, size < ARRAYS_SIZE ? size : ARRAYS_SIZE);
}

int schedule_rows_scan(struct database *database, schedule_row_fn fn, void *userdata)
{
    sqlite3_stmt *statement =
        database_query(database, "SELECT " SCHEDULE(ROW_COLUMN) "slots, name FROM schedule");
    const int name_at = statement ? sqlite3_column_count(statement) - 1 : 0;
    int r;

    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        struct schedule_row row = {0};
        const char *name;
        int stop;

        read_row(statement, &row);
        name = (const char *)sqlite3_column_text(statement, name_at);
        stop = name && record_is_sound(&SCHEDULE_ROW_RECORD, &row) ? fn(userdata, name, &row) : 0;
        if (stop != 0) {
            (void)sqlite3_reset(statement);
            return stop;
        }
    }
    return r;
}
