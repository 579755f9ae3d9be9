/* SPDX-License-Identifier: MIT */
#include "supervisor/store/job-rows.h"

#include "shared/base/cleanup.h"
#include "supervisor/event/attempt-cause.h"
#include "supervisor/event/death.h"
#include "supervisor/job/job.h"
#include "supervisor/job/queue.h"
#include "supervisor/store/row-values.h"
#include <errno.h>

#define ROW job_row
/* What may change, and what does not. The payload follows, or its size in a scan. */
#define PROGRESS(F)                                                                                \
    JOB_FACTS_FIELDS(F)                                                                            \
    F(STORED, state, NUMBER(state))                                                                \
    F(STORED, due, OPTIONAL(due, 0))                                                               \
    F(STORED, delay, OPTIONAL(delay, 0))
#define FIELDS(F)                                                                                  \
    PROGRESS(F)                                                                                    \
    F(STORED, number, NUMBER(number))                                                              \
    F(STORED, grp, TEXT(group))                                                                    \
    F(STORED, key, TEXT(key))                                                                      \
    F(STORED, name, TEXT(name))                                                                    \
    F(STORED, deadline, OPTIONAL(deadline, 0))                                                     \
    F(STORED, time_left, OPTIONAL(time_left, 0))                                                   \
    ROW_ASKED(F)

#define COLUMNS      FIELDS(ROW_COLUMN)
#define PARAMETERS   FIELDS(ROW_PARAMETER)
#define PAYLOAD_SIZE ROW_BLOB_SIZE("payload")
#define RESULT_SIZE  ROW_BLOB_SIZE("result")

static struct side_file file_of(int64_t number)
{
    return (struct side_file){.kind = SIDE_FILE_JOB, .number = number};
}

static const struct field TABLE[] = {FIELDS(FIELD)};
static const struct field PROGRESS_TABLE[] = {PROGRESS(FIELD)};
const struct record JOB_ROW_RECORD = RECORD("job row", TABLE);
static const struct record PROGRESS_RECORD = RECORD("progress", PROGRESS_TABLE);

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
        "INSERT INTO job (" COLUMNS "unclean, payload) VALUES (" PARAMETERS "?, ?)";
    sqlite3_stmt *statement = database_query(database, sql);
    int at, r = row->name_size > 0 ? find_ended(database, row) : 0;

    if (r != 0)
        return r;
    at = row_bind_record(statement, 1, &JOB_ROW_RECORD, row);
    row_bind(statement, at, database->unclean);
    r = row_step_with_blob(database, statement, at + 1, file_of(row->number), row->payload,
                           row->payload_fd, row->payload_size);
    return r == DATABASE_E_EXISTS ? JOB_ROWS_E_EXISTS : r;
}

int job_rows_update(struct database *database, const struct job_row *row)
{
    static const char sql[] =
        "UPDATE job SET " PROGRESS(ROW_ASSIGNMENT) "unclean = ? WHERE number = ?";
    sqlite3_stmt *statement = database_query(database, sql);
    const int at = row_bind_record(statement, 1, &PROGRESS_RECORD, row);

    row_bind(statement, at, database->unclean);
    (void)sqlite3_bind_int64(statement, at + 1, row->number);
    return database_step(database, statement);
}

int job_rows_move(struct database *database, const struct job_row *row)
{
    sqlite3_stmt *statement =
        database_query(database, "UPDATE job SET grp = ?1, moved = 1 WHERE number = ?2");

    row_bind_text(statement, 1, row->group, row->group_size);
    (void)sqlite3_bind_int64(statement, 2, row->number);
    return database_step(database, statement);
}

int job_rows_remove(struct database *database, int64_t number)
{
    sqlite3_stmt *statement = database_query(database, "DELETE FROM job WHERE number = ?1");

    side_files_drop(database, file_of(number));
    (void)sqlite3_bind_int64(statement, 1, number);
    return database_step(database, statement);
}

void job_row_mend(struct job_row *row)
{
    static const struct job_options none = JOB_OPTIONS_DEFAULT;

    if (row->priority >= QUEUE_PRIORITIES)
        row->priority = QUEUE_PRIORITY_DEFAULT;
    if (row->cause > PROTOCOL_CAUSE_DEADLINE)
        row->cause = PROTOCOL_CAUSE_REQUESTED;
    if (row->failed_by >= _ATTEMPT_N_CAUSES)
        row->failed_by = ATTEMPT_CAUSE_NONE;
    if (job_options_check(&row->asked, 0, 0))
        row->asked = none;
}

uint32_t job_row_allows(const struct job_row *row)
{
    const bool wary = row->state == JOB_ROW_RUNNING || row->state == JOB_ROW_HANDED ||
                      row->n_unclean > 1 || row->failed_by == ATTEMPT_CAUSE_SUPERVISOR;

    return row->attempt + !wary;
}

/* Adds what is not known: see struct job_row. */
static void count_unclean(struct job_row *row, uint32_t unclean)
{
    row->n_unclean = unclean;
    if (row->state == JOB_ROW_HANDED && unclean > 0) {
        row->state = JOB_ROW_RUNNING;
    } else if (row->state == JOB_ROW_HANDED) {
        row->state = JOB_ROW_WAITING;
        row->attempt--;
    } else if (row->state != JOB_ROW_RUNNING) {
        row->attempt += unclean;
    }
}

static int read_row(struct database *database, sqlite3_stmt *statement, bool with_payload,
                    struct job_row *row)
{
    const int at = row_read_record(statement, 0, &JOB_ROW_RECORD, row), payload = at + 1;

    count_unclean(row, database->unclean - (uint32_t)sqlite3_column_int64(statement, at));
    job_row_mend(row);
    if (with_payload)
        return row_read_blob(database, statement, payload, file_of(row->number), &row->payload,
                             &row->payload_size);
    row->payload_size = (uint64_t)sqlite3_column_int64(statement, payload);
    return 0;
}

/* Calls `fn` for each row of a bound statement. */
static int read_rows(struct database *database, sqlite3_stmt *statement, bool with_payload,
                     job_row_fn fn, void *userdata)
{
    int r;

    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        struct job_row row = JOB_ROW_NULL;

        r = read_row(database, statement, with_payload, &row);
        if (r == 0)
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
        database_query(database, "SELECT " COLUMNS "unclean, payload FROM job WHERE number = ?1");
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
        "SELECT " COLUMNS "unclean, " PAYLOAD_SIZE " FROM job WHERE number > ?1"
        " UNION ALL SELECT created, started, uid, NULL, attempt, max_retries, failed, priority, 0,"
        " NULL, 1, NULL, state, NULL, NULL, number, grp, key, name, NULL, NULL, NULL, NULL, NULL,"
        " NULL, NULL, (SELECT unclean FROM store), " RESULT_SIZE
        " FROM ended WHERE number > ?1 ORDER BY number LIMIT ?2";
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
    static const char sql[] = "SELECT " COLUMNS "unclean, " PAYLOAD_SIZE
                              " FROM job WHERE number > ?1 ORDER BY number LIMIT ?2";
    sqlite3_stmt *statement = database_query(database, sql);

    (void)sqlite3_bind_int64(statement, 1, after);
    (void)sqlite3_bind_int64(statement, 2, max);
    return read_rows(database, statement, false, fn, userdata);
}
