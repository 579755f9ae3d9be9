/* SPDX-License-Identifier: MIT */
#include "supervisor/store/dead-rows.h"

#include "shared/base/cleanup.h"
#include "supervisor/store/row-values.h"

#define ROW dead_row
/* The payload follows. */
#define FIELDS(F)                                                                                  \
    F(DISK, number, NUMBER(number))                                                                \
    F(DISK, grp, TEXT(group))                                                                      \
    F(DISK, key, TEXT(key))                                                                        \
    F(DISK, name, TEXT(name))                                                                      \
    F(DISK, reason, TEXT(reason))                                                                  \
    F(DISK, letter, NUMBER(letter))                                                                \
    F(DISK, code, NUMBER(code))                                                                    \
    F(DISK, attempt, NUMBER(attempts))                                                             \
    F(DISK, cause, OPTIONAL(cause, ATTEMPT_CAUSE_NONE))                                            \
    F(DISK, uid, NUMBER(submitter_uid))                                                            \
    F(DISK, created, NUMBER(created_at))                                                           \
    F(DISK, ended, NUMBER(dead_at))                                                                \
    ROW_ASKED(F)

#define COLUMNS FIELDS(ROW_COLUMN) "payload"
#define BYTES   ((int)ELEMENTS(TABLE)) /* column of the payload */

static struct side_file file_of(int64_t number)
{
    return (struct side_file){.kind = SIDE_FILE_DEAD, .number = number};
}

static const struct field TABLE[] = {FIELDS(FIELD)};
static const struct record DEAD_RECORD = RECORD("dead", TABLE);

int dead_rows_put(struct database *database, const struct dead_row *row)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO dead (" COLUMNS ") VALUES (" FIELDS(ROW_PARAMETER) "?)";
    sqlite3_stmt *statement = database_query(database, sql);

    (void)row_bind_record(statement, 1, &DEAD_RECORD, row);
    if (row->payload_dropped) {
        side_files_drop(database, file_of(row->number)); /* of a row that is replaced */
        (void)sqlite3_bind_null(statement, BYTES + 1);
        return database_step(database, statement);
    }
    return row_step_with_blob(database, statement, BYTES + 1, file_of(row->number), row->payload,
                              row->payload_fd, row->payload_size);
}

int dead_rows_remove(struct database *database, int64_t number)
{
    sqlite3_stmt *statement = database_query(database, "DELETE FROM dead WHERE number = ?1");

    side_files_drop(database, file_of(number));
    (void)sqlite3_bind_int64(statement, 1, number);
    return database_step(database, statement);
}

static int read_row(struct database *database, sqlite3_stmt *statement, struct dead_row *ret)
{
    *ret = (struct dead_row)DEAD_ROW_NULL;
    (void)row_read_record(statement, 0, &DEAD_RECORD, ret);
    if (ret->cause >= _ATTEMPT_N_CAUSES)
        ret->cause = ATTEMPT_CAUSE_NONE;
    ret->payload_dropped = sqlite3_column_type(statement, BYTES) == SQLITE_NULL;
    return row_read_blob(database, statement, BYTES, file_of(ret->number), &ret->payload,
                         &ret->payload_size);
}

int dead_rows_scan(struct database *database, dead_row_fn fn, void *userdata)
{
    sqlite3_stmt *statement =
        database_query(database, "SELECT " COLUMNS " FROM dead ORDER BY letter, number");
    int r;

    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        struct dead_row row;

        r = read_row(database, statement, &row);
        if (r == 0)
            r = fn(userdata, &row);
        if (r != 0)
            break;
    }
    (void)sqlite3_reset(statement);
    return r;
}
