/* SPDX-License-Identifier: MIT */
#include "supervisor/store/dead-rows.h"

#include "supervisor/store/row-values.h"

/* In the order of the parameters and of the columns read. */
#define COLUMNS                                                                                    \
    "number, grp, key, name, reason, letter, code, attempt, uid, created, ended, asked_retries,"   \
    " asked_timeout, asked_backoff_min, asked_backoff_max, asked_priority, payload"

enum {
    NUMBER,
    GROUP,
    KEY,
    NAME,
    REASON,
    LETTER,
    CODE,
    ATTEMPT,
    UID,
    CREATED,
    ENDED,
    ASKED, /* five columns */
    PAYLOAD = ASKED + ROW_OPTIONS,
};

/* Columns count from 0, parameters from 1. */
int dead_rows_put(struct database *database, const struct dead_row *row)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO dead (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
        " ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
    sqlite3_stmt *statement = database_query(database, sql);

    (void)sqlite3_bind_int64(statement, NUMBER + 1, row->number);
    row_bind_text(statement, GROUP + 1, row->group, row->group_size);
    row_bind_text(statement, KEY + 1, row->key, row->key_size);
    row_bind_text(statement, NAME + 1, row->name, row->name_size);
    row_bind_text(statement, REASON + 1, row->reason, row->reason_size);
    row_bind(statement, LETTER + 1, row->letter);
    (void)sqlite3_bind_int(statement, CODE + 1, row->code);
    row_bind(statement, ATTEMPT + 1, row->attempts);
    row_bind(statement, UID + 1, row->submitter_uid);
    row_bind(statement, CREATED + 1, row->created_at);
    row_bind(statement, ENDED + 1, row->dead_at);
    row_bind_options(statement, ASKED + 1, &row->asked);
    return row_step_with_bytes(database, statement, PAYLOAD + 1, row->payload, row->payload_fd,
                               row->payload_size);
}

int dead_rows_remove(struct database *database, int64_t number)
{
    sqlite3_stmt *statement = database_query(database, "DELETE FROM dead WHERE number = ?1");

    (void)sqlite3_bind_int64(statement, 1, number);
    return database_step(database, statement);
}

static struct dead_row read_row(sqlite3_stmt *statement)
{
    struct dead_row row = DEAD_ROW_NULL;

    row.number = sqlite3_column_int64(statement, NUMBER);
    row.group = row_read_text(statement, GROUP, &row.group_size);
    row.key = row_read_text(statement, KEY, &row.key_size);
    row.name = row_read_text(statement, NAME, &row.name_size);
    row.reason = row_read_text(statement, REASON, &row.reason_size);
    row.letter = (uint64_t)sqlite3_column_int64(statement, LETTER);
    row.code = sqlite3_column_int(statement, CODE);
    row.attempts = (uint32_t)sqlite3_column_int64(statement, ATTEMPT);
    row.submitter_uid = (uid_t)sqlite3_column_int64(statement, UID);
    row.created_at = (usec_t)sqlite3_column_int64(statement, CREATED);
    row.dead_at = (usec_t)sqlite3_column_int64(statement, ENDED);
    row.asked = row_read_options(statement, ASKED);
    row.payload = row_read_bytes(statement, PAYLOAD, &row.payload_size);
    return row;
}

int dead_rows_scan(struct database *database, dead_row_fn fn, void *userdata)
{
    sqlite3_stmt *statement =
        database_query(database, "SELECT " COLUMNS " FROM dead ORDER BY letter, number");
    int r;

    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        const struct dead_row row = read_row(statement);

        r = fn(userdata, &row);
        if (r != 0)
            break;
    }
    (void)sqlite3_reset(statement);
    return r;
}
