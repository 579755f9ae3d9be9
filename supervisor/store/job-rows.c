/* SPDX-License-Identifier: MIT */
#include "supervisor/store/job-rows.h"

#include "supervisor/store/row-values.h"

/* In the order of the parameters and of the columns read. */
#define COLUMNS                                                                                    \
    "number, grp, key, name, priority, asked_retries, asked_timeout, asked_backoff_min,"           \
    " asked_backoff_max, asked_priority, max_retries, uid, keep, created, deadline, state,"        \
    " cancel, attempt, failed, due, started"

enum {
    NUMBER = 1,
    GROUP,
    KEY,
    NAME,
    PRIORITY,
    ASKED, /* five columns */
    MAX_RETRIES = ASKED + ROW_OPTIONS,
    UID,
    KEEP,
    CREATED,
    DEADLINE,
    STATE,
    CANCEL,
    ATTEMPT,
    FAILED,
    DUE,
    STARTED,
    PAYLOAD, /* its size in a scan */
};

static void bind_row(sqlite3_stmt *statement, const struct job_row *row)
{
    (void)sqlite3_bind_int64(statement, NUMBER, row->number);
    row_bind_text(statement, GROUP, row->group, row->group_size);
    row_bind_text(statement, KEY, row->key, row->key_size);
    row_bind_text(statement, NAME, row->name, row->name_size);
    row_bind(statement, PRIORITY, row->priority);
    row_bind_options(statement, ASKED, &row->asked);
    row_bind(statement, MAX_RETRIES, row->max_retries);
    row_bind(statement, UID, row->submitter_uid);
    row_bind(statement, KEEP, row->keep_result);
    row_bind(statement, CREATED, row->created_at);
    row_bind_unless(statement, DEADLINE, row->deadline, 0);
}

static void bind_progress(sqlite3_stmt *statement, const struct job_row *row)
{
    row_bind(statement, STATE, row->state);
    row_bind(statement, CANCEL, row->cancel_requested);
    row_bind(statement, ATTEMPT, row->attempt);
    row_bind(statement, FAILED, row->n_failed);
    row_bind_unless(statement, DUE, row->due, 0);
    row_bind_unless(statement, STARTED, row->started_at, 0);
}

/* Whether a kept result has the name. */
static int find_ended(struct database *database, const struct job_row *row)
{
    sqlite3_stmt *statement =
        database_query(database, "SELECT 1 FROM ended WHERE name = ?1 AND number <> ?2");
    int r;

    row_bind_text(statement, 1, row->name, row->name_size);
    (void)sqlite3_bind_int64(statement, 2, row->number);
    r = database_step(database, statement);
    (void)sqlite3_reset(statement);
    return r == DATABASE_E_ROW ? JOB_ROWS_E_EXISTS : r;
}

int job_rows_check_name(struct database *database, const struct job_row *row)
{
    int64_t other;
    int r = job_rows_find(database, row->name, row->name_size, &other);

    if (r == 0)
        return other == row->number ? 0 : JOB_ROWS_E_EXISTS;
    return r == JOB_ROWS_E_MISSING ? find_ended(database, row) : r;
}

int job_rows_add(struct database *database, const struct job_row *row)
{
    static const char sql[] =
        "INSERT INTO job (" COLUMNS ", payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
        " ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)";
    sqlite3_stmt *statement = database_query(database, sql);
    int r = row->name_size > 0 ? find_ended(database, row) : 0;

    if (r != 0)
        return r;
    bind_row(statement, row);
    bind_progress(statement, row);
    r = row_step_with_bytes(database, statement, PAYLOAD, row->payload, row->payload_fd,
                            row->payload_size);
    return r == DATABASE_E_EXISTS ? JOB_ROWS_E_EXISTS : r;
}

int job_rows_update(struct database *database, const struct job_row *row)
{
    static const char sql[] =
        "UPDATE job SET state = ?16, cancel = ?17, attempt = ?18, failed = ?19,"
        " due = ?20, started = ?21 WHERE number = ?1";
    sqlite3_stmt *statement = database_query(database, sql);

    (void)sqlite3_bind_int64(statement, NUMBER, row->number);
    bind_progress(statement, row);
    return database_step(database, statement);
}

int job_rows_remove(struct database *database, int64_t number)
{
    sqlite3_stmt *statement = database_query(database, "DELETE FROM job WHERE number = ?1");

    (void)sqlite3_bind_int64(statement, NUMBER, number);
    return database_step(database, statement);
}

/* Parameters count from 1, columns from 0. */
static void read_row(sqlite3_stmt *statement, struct job_row *ret)
{
    *ret = (struct job_row)JOB_ROW_NULL;
    ret->number = sqlite3_column_int64(statement, NUMBER - 1);
    ret->group = row_read_text(statement, GROUP - 1, &ret->group_size);
    ret->key = row_read_text(statement, KEY - 1, &ret->key_size);
    ret->name = row_read_text(statement, NAME - 1, &ret->name_size);
    ret->priority = (uint8_t)sqlite3_column_int(statement, PRIORITY - 1);
    ret->asked = row_read_options(statement, ASKED - 1);
    ret->max_retries = (uint32_t)sqlite3_column_int64(statement, MAX_RETRIES - 1);
    ret->submitter_uid = (uid_t)sqlite3_column_int64(statement, UID - 1);
    ret->keep_result = sqlite3_column_int(statement, KEEP - 1) != 0;
    ret->created_at = (usec_t)sqlite3_column_int64(statement, CREATED - 1);
    ret->deadline = row_read_or(statement, DEADLINE - 1, 0);
    ret->state = (enum job_row_state)sqlite3_column_int(statement, STATE - 1);
    ret->cancel_requested = sqlite3_column_int(statement, CANCEL - 1) != 0;
    ret->attempt = (uint32_t)sqlite3_column_int64(statement, ATTEMPT - 1);
    ret->n_failed = (uint32_t)sqlite3_column_int64(statement, FAILED - 1);
    ret->due = row_read_or(statement, DUE - 1, 0);
    ret->started_at = row_read_or(statement, STARTED - 1, 0);
}

/* Calls `fn` for each row of a bound statement. */
static int read_rows(struct database *database, sqlite3_stmt *statement, bool with_payload,
                     job_row_fn fn, void *userdata)
{
    struct job_row row;
    int r;

    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        read_row(statement, &row);
        if (with_payload) {
            row.payload = row_read_bytes(statement, PAYLOAD - 1, &row.payload_size);
        } else {
            row.payload_size = (uint64_t)sqlite3_column_int64(statement, PAYLOAD - 1);
        }
        r = fn(userdata, &row);
        if (r != 0)
            break;
    }
    (void)sqlite3_reset(statement);
    return r;
}

struct fetch {
    job_row_fn fn;
    void *userdata;
    bool found;
};

static int fetched(void *userdata, const struct job_row *row)
{
    struct fetch *fetch = userdata;

    fetch->found = true;
    return fetch->fn(fetch->userdata, row);
}

int job_rows_fetch(struct database *database, int64_t number, job_row_fn fn, void *userdata)
{
    struct fetch fetch = {.fn = fn, .userdata = userdata};
    sqlite3_stmt *statement =
        database_query(database, "SELECT " COLUMNS ", payload FROM job WHERE number = ?1");
    int r;

    (void)sqlite3_bind_int64(statement, 1, number);
    r = read_rows(database, statement, true, fetched, &fetch);
    return r == 0 && !fetch.found ? JOB_ROWS_E_MISSING : r;
}

int job_rows_find(struct database *database, const char *name, size_t size, int64_t *ret_number)
{
    sqlite3_stmt *statement = database_query(database, "SELECT number FROM job WHERE name = ?1");
    int r;

    row_bind_text(statement, 1, name, (uint32_t)size);
    r = database_step(database, statement);
    if (r != DATABASE_E_ROW)
        return r < 0 ? r : JOB_ROWS_E_MISSING;
    *ret_number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return 0;
}

int job_rows_list(struct database *database, int64_t after, bool ended, unsigned max, job_row_fn fn,
                  void *userdata)
{
    static const char sql[] =
        "SELECT " COLUMNS ", length(payload) FROM job WHERE number > ?1"
        " UNION ALL SELECT number, grp, key, name, priority, NULL, NULL, NULL, NULL, NULL,"
        " max_retries, uid, 1, created, NULL, state, 0, attempt, failed, NULL, started,"
        " length(result) FROM ended WHERE number > ?1 ORDER BY number LIMIT ?2";
    sqlite3_stmt *statement;

    if (!ended)
        return job_rows_scan(database, after, max, fn, userdata);
    statement = database_query(database, sql);
    (void)sqlite3_bind_int64(statement, 1, after);
    (void)sqlite3_bind_int64(statement, 2, max);
    return read_rows(database, statement, false, fn, userdata);
}

int job_rows_scan(struct database *database, int64_t after, unsigned max, job_row_fn fn,
                  void *userdata)
{
    static const char sql[] = "SELECT " COLUMNS ", length(payload) FROM job WHERE number > ?1"
                              " ORDER BY number LIMIT ?2";
    sqlite3_stmt *statement = database_query(database, sql);

    (void)sqlite3_bind_int64(statement, 1, after);
    (void)sqlite3_bind_int64(statement, 2, max);
    return read_rows(database, statement, false, fn, userdata);
}
