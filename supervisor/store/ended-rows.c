/* SPDX-License-Identifier: MIT */
#include "supervisor/store/ended-rows.h"

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol.h"
#include "supervisor/store/row-values.h"

#define ROW ended_row
/* The result follows. */
#define FIELDS(F)                                                                                  \
    F(DISK, number, NUMBER(number))                                                                \
    F(DISK, grp, TEXT(group))                                                                      \
    F(DISK, key, TEXT(key))                                                                        \
    F(DISK, name, TEXT(name))                                                                      \
    F(DISK, reason, TEXT(reason))                                                                  \
    F(DISK, state, NUMBER(state))                                                                  \
    F(DISK, priority, NUMBER(priority))                                                            \
    F(DISK, cause, OPTIONAL(cause, PROTOCOL_CAUSE_NONE))                                           \
    F(DISK, moved, OPTIONAL(moved, 0))                                                             \
    F(DISK, code, NUMBER(code))                                                                    \
    F(DISK, attempt, NUMBER(attempt))                                                              \
    F(DISK, failed, NUMBER(n_failed))                                                              \
    F(DISK, max_retries, NUMBER(max_retries))                                                      \
    F(DISK, uid, NUMBER(submitter_uid))                                                            \
    F(DISK, created, NUMBER(created_at))                                                           \
    F(DISK, started, OPTIONAL(started_at, 0))                                                      \
    F(DISK, ended, NUMBER(ended_at))

#define COLUMNS FIELDS(ROW_COLUMN) "result"
#define BYTES   ((int)ELEMENTS(TABLE)) /* column of the result */

static struct side_file file_of(int64_t number)
{
    return (struct side_file){.kind = SIDE_FILE_ENDED, .number = number};
}

static const struct field TABLE[] = {FIELDS(FIELD)};
static const struct record ENDED_RECORD = RECORD("ended", TABLE);

int ended_rows_put(struct database *database, const struct ended_row *row)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO ended (" COLUMNS ") VALUES (" FIELDS(ROW_PARAMETER) "?)";
    sqlite3_stmt *statement = database_query(database, sql);

    (void)row_bind_record(statement, 1, &ENDED_RECORD, row);
    return row_step_with_blob(database, statement, BYTES + 1, file_of(row->number), row->result,
                              row->result_fd, row->result_size);
}

int ended_rows_remove(struct database *database, int64_t number)
{
    sqlite3_stmt *statement = database_query(database, "DELETE FROM ended WHERE number = ?1");

    side_files_drop(database, file_of(number));
    (void)sqlite3_bind_int64(statement, 1, number);
    return database_step(database, statement);
}

static int read_row(struct database *database, sqlite3_stmt *statement, struct ended_row *ret)
{
    *ret = (struct ended_row)ENDED_ROW_NULL;
    (void)row_read_record(statement, 0, &ENDED_RECORD, ret);
    if (ret->cause > PROTOCOL_CAUSE_PAYLOAD_LOST)
        ret->cause = PROTOCOL_CAUSE_NONE; /* the file is damaged */
    return row_read_blob(database, statement, BYTES, file_of(ret->number), &ret->result,
                         &ret->result_size);
}

/* Calls `fn` for each row of a bound statement, and counts them. */
static int read_rows(struct database *database, sqlite3_stmt *statement, ended_row_fn fn,
                     void *userdata, unsigned *ret_n)
{
    int r;

    *ret_n = 0;
    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        struct ended_row row;

        ++*ret_n;
        r = read_row(database, statement, &row);
        if (r == 0)
            r = fn(userdata, &row);
        if (r != 0)
            break;
    }
    (void)sqlite3_reset(statement);
    return r;
}

int ended_rows_fetch(struct database *database, int64_t number, ended_row_fn fn, void *userdata)
{
    sqlite3_stmt *statement =
        database_query(database, "SELECT " COLUMNS " FROM ended WHERE number = ?1");
    unsigned n;
    int r;

    (void)sqlite3_bind_int64(statement, 1, number);
    r = read_rows(database, statement, fn, userdata, &n);
    return r == 0 && n == 0 ? ENDED_ROWS_E_MISSING : r;
}

int ended_rows_scan(struct database *database, usec_t ended_at, int64_t number, unsigned max,
                    ended_row_fn fn, void *userdata)
{
    static const char sql[] = "SELECT " COLUMNS " FROM ended WHERE (ended, number) > (?1, ?2)"
                              " ORDER BY ended, number LIMIT ?3";
    sqlite3_stmt *statement = database_query(database, sql);
    unsigned n;

    (void)sqlite3_bind_int64(statement, 1, (int64_t)ended_at);
    (void)sqlite3_bind_int64(statement, 2, number);
    (void)sqlite3_bind_int64(statement, 3, max);
    return read_rows(database, statement, fn, userdata, &n);
}
