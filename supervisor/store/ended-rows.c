/* SPDX-License-Identifier: MIT */
#include "supervisor/store/ended-rows.h"

#include "supervisor/store/row-values.h"

/* In the order of the parameters and of the columns read. */
#define COLUMNS                                                                                    \
    "number, grp, key, name, reason, state, priority, code, attempt, failed, max_retries,"         \
    " uid, created, started, ended, result"

enum {
    NUMBER,
    GROUP,
    KEY,
    NAME,
    REASON,
    STATE,
    PRIORITY,
    CODE,
    ATTEMPT,
    FAILED,
    MAX_RETRIES,
    UID,
    CREATED,
    STARTED,
    ENDED,
    RESULT,
};

/* Columns count from 0, parameters from 1. */
int ended_rows_put(struct database *database, const struct ended_row *row)
{
    static const char sql[] = "INSERT OR REPLACE INTO ended (" COLUMNS ") VALUES (?1, ?2, ?3, ?4,"
                              " ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    sqlite3_stmt *statement = database_query(database, sql);

    (void)sqlite3_bind_int64(statement, NUMBER + 1, row->number);
    row_bind_text(statement, GROUP + 1, row->group, row->group_size);
    row_bind_text(statement, KEY + 1, row->key, row->key_size);
    row_bind_text(statement, NAME + 1, row->name, row->name_size);
    row_bind_text(statement, REASON + 1, row->reason, row->reason_size);
    row_bind(statement, STATE + 1, row->state);
    row_bind(statement, PRIORITY + 1, row->priority);
    (void)sqlite3_bind_int(statement, CODE + 1, row->code);
    row_bind(statement, ATTEMPT + 1, row->attempt);
    row_bind(statement, FAILED + 1, row->n_failed);
    row_bind(statement, MAX_RETRIES + 1, row->max_retries);
    row_bind(statement, UID + 1, row->submitter_uid);
    row_bind(statement, CREATED + 1, row->created_at);
    row_bind_unless(statement, STARTED + 1, row->started_at, 0);
    row_bind(statement, ENDED + 1, row->ended_at);
    return row_step_with_bytes(database, statement, RESULT + 1, row->result, row->result_fd,
                               row->result_size);
}

int ended_rows_remove(struct database *database, int64_t number)
{
    sqlite3_stmt *statement = database_query(database, "DELETE FROM ended WHERE number = ?1");

    (void)sqlite3_bind_int64(statement, 1, number);
    return database_step(database, statement);
}

static struct ended_row read_row(sqlite3_stmt *statement)
{
    struct ended_row row = ENDED_ROW_NULL;

    row.number = sqlite3_column_int64(statement, NUMBER);
    row.group = row_read_text(statement, GROUP, &row.group_size);
    row.key = row_read_text(statement, KEY, &row.key_size);
    row.name = row_read_text(statement, NAME, &row.name_size);
    row.reason = row_read_text(statement, REASON, &row.reason_size);
    row.state = (uint8_t)sqlite3_column_int(statement, STATE);
    row.priority = (uint8_t)sqlite3_column_int(statement, PRIORITY);
    row.code = sqlite3_column_int(statement, CODE);
    row.attempt = (uint32_t)sqlite3_column_int64(statement, ATTEMPT);
    row.n_failed = (uint32_t)sqlite3_column_int64(statement, FAILED);
    row.max_retries = (uint32_t)sqlite3_column_int64(statement, MAX_RETRIES);
    row.submitter_uid = (uid_t)sqlite3_column_int64(statement, UID);
    row.created_at = (usec_t)sqlite3_column_int64(statement, CREATED);
    row.started_at = row_read_or(statement, STARTED, 0);
    row.ended_at = (usec_t)sqlite3_column_int64(statement, ENDED);
    row.result = row_read_bytes(statement, RESULT, &row.result_size);
    return row;
}

/* Calls `fn` for each row of a bound statement, and counts them. */
static int read_rows(struct database *database, sqlite3_stmt *statement, ended_row_fn fn,
                     void *userdata, unsigned *ret_n)
{
    int r;

    *ret_n = 0;
    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        const struct ended_row row = read_row(statement);

        ++*ret_n;
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
