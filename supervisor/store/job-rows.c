/* SPDX-License-Identifier: MIT */
#include "supervisor/store/job-rows.h"

#include "shared/base/cleanup.h"
#include "supervisor/event/death.h"
#include "supervisor/job/job.h"
#include "supervisor/job/queue.h"
#include "supervisor/store/pieces.h"
#include "supervisor/store/row-values.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ROW job_row
/* What may change, and what does not. The payload follows, or its size in a scan. */
#define PROGRESS(F)                                                                                \
    JOB_FACTS_FIELDS(F)                                                                            \
    F(STORED, state, NUMBER(state))                                                                \
    F(STORED, due, OPTIONAL(due, 0))                                                               \
    F(STORED, delay, OPTIONAL(delay, 0))                                                           \
    F(STORED, checkpoint, OPTIONAL(checkpoint_size, 0))
/* The choices of the submitter, which a dead letter keeps for another job. */
#define CHOSEN(F)                                                                                  \
    F(STORED, unique_high, OPTIONAL(unique_high, 0))                                               \
    F(STORED, unique_low, OPTIONAL(unique_low, 0))                                                 \
    F(STORED, traceparent, TEXT(traceparent))                                                      \
    ROW_ASKED(F)
#define FIELDS(F)                                                                                  \
    PROGRESS(F)                                                                                    \
    F(STORED, number, NUMBER(number))                                                              \
    F(STORED, grp, TEXT(group))                                                                    \
    F(STORED, key, TEXT(key))                                                                      \
    F(STORED, name, TEXT(name))                                                                    \
    F(STORED, deadline, OPTIONAL(deadline, 0))                                                     \
    F(STORED, time_left, OPTIONAL(time_left, 0))                                                   \
    F(STORED, debounced, OPTIONAL(debounced, 0))                                                   \
    F(STORED, ties, TEXT(ties))                                                                    \
    F(STORED, batch, OPTIONAL(batch, BATCH_NONE))                                                  \
    F(STORED, members_succeeded, OPTIONAL(n_members_succeeded, 0))                                 \
    F(STORED, members_failed, OPTIONAL(n_members_failed, 0))                                       \
    F(STORED, tags, TEXT(tags))                                                                    \
    CHOSEN(F)

/* The columns of the other tables; the result, or the payload, follows. */
#define END(F)                                                                                     \
    F(DISK, number, NUMBER(number))                                                                \
    F(DISK, grp, TEXT(group))                                                                      \
    F(DISK, key, TEXT(key))                                                                        \
    F(DISK, name, TEXT(name))                                                                      \
    F(DISK, reason, TEXT(reason))                                                                  \
    F(DISK, code, NUMBER(code))                                                                    \
    F(DISK, uid, NUMBER(submitter_uid))                                                            \
    F(DISK, created, NUMBER(created_at))                                                           \
    F(DISK, ended, NUMBER(ended_at))                                                               \
    F(DISK, tags, TEXT(tags))
#define ENDED(F)                                                                                   \
    END(F)                                                                                         \
    F(DISK, state, NUMBER(state))                                                                  \
    F(DISK, priority, NUMBER(priority))                                                            \
    F(DISK, cause, OPTIONAL(cause, PROTOCOL_CAUSE_NONE))                                           \
    F(DISK, moved, OPTIONAL(moved, 0))                                                             \
    F(DISK, attempt, NUMBER(attempt))                                                              \
    F(DISK, failed, NUMBER(n_failed))                                                              \
    F(DISK, max_retries, NUMBER(max_retries))                                                      \
    F(DISK, started, OPTIONAL(started_at, 0))                                                      \
    F(DISK, ties, TEXT(ties))
#define DEAD(F)                                                                                    \
    END(F)                                                                                         \
    F(DISK, letter, NUMBER(letter))                                                                \
    F(DISK, attempt, NUMBER(n_failed))                                                             \
    F(DISK, cause, OPTIONAL(failed_by, ATTEMPT_CAUSE_NONE))                                        \
    CHOSEN(F)

/* If the bytes are in pieces, their column holds only the size. SIZE is the size in any case,
 * IN_PIECES the size of bytes in pieces. BYTES are those of the row, or of its only piece. */
#define SIZE(column)      "iif(typeof(" #column ") = 'integer', " #column ", length(" #column "))"
#define IN_PIECES(column) "iif(typeof(" #column ") = 'integer', " #column ", 0)"
#define BYTES(table, column, kind)                                                                 \
    "coalesce((SELECT bytes FROM piece WHERE piece.number = " #table ".number AND kind = " #kind   \
    " AND " #column " <= 1048576), " #column ")"
_Static_assert(PIECE_SIZE == 1048576 && PIECES_PAYLOAD == 0 && PIECES_RESULT == 1,
               "the numbers in BYTES");

#define COLUMNS    FIELDS(ROW_COLUMN)
#define PARAMETERS FIELDS(ROW_PARAMETER)

const struct record JOB_ROW_RECORD = RECORD("job row", FIELDS);
static const struct record PROGRESS_RECORD = RECORD("progress", PROGRESS);
static const struct record ENDED_RECORD = RECORD("ended", ENDED);
static const struct record DEAD_RECORD = RECORD("dead", DEAD);

static const struct {
    const struct record *record;
    enum piece_kind kind;
    const char *put, *remove; /* removing returns the size of bytes in pieces */
    const char *scan;
} TABLES[_ROWS_N_TABLES] = {
    [ROWS_JOB] = {&JOB_ROW_RECORD, PIECES_PAYLOAD,
                  "INSERT INTO job (" COLUMNS "unclean, payload) VALUES (" PARAMETERS "?, ?)",
                  "DELETE FROM job WHERE number = ?1 RETURNING " IN_PIECES(payload), NULL},
    [ROWS_ENDED] = {&ENDED_RECORD, PIECES_RESULT,
                    "INSERT OR REPLACE INTO ended (" ENDED(ROW_COLUMN) "result) VALUES (" ENDED(
                        ROW_PARAMETER) "?)",
                    "DELETE FROM ended WHERE number = ?1 RETURNING " IN_PIECES(result),
                    "SELECT " ENDED(ROW_COLUMN) BYTES(
                        ended, result,
                        1) " FROM ended"
                           " WHERE (ended, number) > (?1, ?2) ORDER BY ended, number LIMIT ?3"},
    [ROWS_DEAD] = {&DEAD_RECORD, PIECES_PAYLOAD,
                   "INSERT OR REPLACE INTO dead (" DEAD(ROW_COLUMN) "payload) VALUES (" DEAD(
                       ROW_PARAMETER) "?)",
                   "DELETE FROM dead WHERE number = ?1 RETURNING " IN_PIECES(payload),
                   "SELECT " DEAD(ROW_COLUMN) BYTES(
                       dead, payload,
                       0) " FROM dead"
                          " WHERE (letter, number) > (?1, ?2) ORDER BY letter, number LIMIT ?3"},
};

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

static int put_row(struct database *database, enum row_table table, const struct job_row *row)
{
    sqlite3_stmt *statement = database_query(database, TABLES[table].put);
    int at = row_bind_record(statement, 1, TABLES[table].record, row);

    if (table == ROWS_JOB)
        row_bind(statement, at++, database->unclean);
    if (row->payload_dropped)
        (void)sqlite3_bind_null(statement, at);
    else if (in_pieces(row->payload_size, row->payload_fd))
        row_bind(statement, at, row->payload_size);
    else
        row_bind_bytes(database, statement, at, row->payload, row->payload_size);
    return database_step(database, statement);
}

int job_rows_put(struct database *database, enum row_table table, const struct job_row *row)
{
    const enum piece_kind kind = TABLES[table].kind;
    int r = put_row(database, table, row);

    if (r != 0 || !in_pieces(row->payload_size, row->payload_fd))
        return r;
    return row->payload_dropped ? pieces_discard(database, row->number, kind, row->payload_size)
                                : pieces_keep(database, row->number, kind);
}

int job_rows_add(struct database *database, const struct job_row *row)
{
    int r = job_rows_put(database, ROWS_JOB, row);

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

int job_rows_put_checkpoint(struct database *database, int64_t number, const void *bytes,
                            size_t size)
{
    static const char put[] = "INSERT OR REPLACE INTO checkpoint (number, bytes) VALUES (?1, ?2)";
    static const char remove[] = "DELETE FROM checkpoint WHERE number = ?1";
    sqlite3_stmt *statement = database_query(database, size > 0 ? put : remove);

    (void)sqlite3_bind_int64(statement, 1, number);
    if (size > 0)
        row_bind_bytes(database, statement, 2, bytes, size);
    return database_step(database, statement);
}

int job_rows_move(struct database *database, const struct job_row *row)
{
    sqlite3_stmt *statement =
        database_query(database, "UPDATE job SET grp = ?1, asked_priority = ?2 WHERE number = ?3");

    row_bind_text(statement, 1, row->group, row->group_size);
    if (row->asked.priority != PROTOCOL_DEFAULT_PRIORITY)
        row_bind(statement, 2, row->asked.priority);
    else
        (void)sqlite3_bind_null(statement, 2);
    (void)sqlite3_bind_int64(statement, 3, row->number);
    return database_step(database, statement);
}

/* Returns the size of bytes in pieces that no row may refer to now; 0 = there were none. */
static int remove_row(struct database *database, enum row_table table, int64_t number,
                      uint64_t *ret_size)
{
    sqlite3_stmt *statement = database_query(database, TABLES[table].remove);
    int r;

    *ret_size = 0;
    (void)sqlite3_bind_int64(statement, 1, number);
    r = database_step(database, statement);
    if (r != DATABASE_E_ROW)
        return r;
    *ret_size = (uint64_t)sqlite3_column_int64(statement, 0);
    return database_step(database, statement);
}

/* Runs a statement whose only parameter is a number. */
static int run_for(struct database *database, const char *sql, int64_t number)
{
    sqlite3_stmt *statement = database_query(database, sql);

    (void)sqlite3_bind_int64(statement, 1, number);
    return database_step(database, statement);
}

int job_rows_put_fate(struct database *database, int64_t number, unsigned state)
{
    sqlite3_stmt *statement =
        database_query(database, "INSERT OR REPLACE INTO fate (number, state) VALUES (?1, ?2)");

    (void)sqlite3_bind_int64(statement, 1, number);
    row_bind(statement, 2, state);
    return database_step(database, statement);
}

_Static_assert(BATCH_CLOSED == 2, "the number below");

int job_rows_close_batch(struct database *database, int64_t number)
{
    return run_for(database, "UPDATE job SET batch = 2 WHERE number = ?1", number);
}

int job_rows_count_member(struct database *database, int64_t number, bool succeeded)
{
    static const char *const sql[] = {
        "UPDATE job SET members_failed = ifnull(members_failed, 0) + 1 WHERE number = ?1",
        "UPDATE job SET members_succeeded = ifnull(members_succeeded, 0) + 1 WHERE number = ?1",
    };

    return run_for(database, sql[succeeded], number);
}

int job_rows_take(struct database *database, int64_t number)
{
    uint64_t size;

    return remove_row(database, ROWS_JOB, number, &size);
}

int job_rows_cancel(struct database *database, int64_t number)
{
    sqlite3_stmt *statement =
        database_query(database, "UPDATE job SET cancel = ?1 WHERE number = ?2");

    row_bind(statement, 1, PROTOCOL_CAUSE_REQUESTED);
    (void)sqlite3_bind_int64(statement, 2, number);
    return database_step(database, statement);
}

int job_rows_remove(struct database *database, unsigned tables, int64_t number)
{
    int r = tables == ROWS_ALL    ? pieces_abandon(database, number)
            : tables == ROWS_FATE ? run_for(database, "DELETE FROM fate WHERE number = ?1", number)
                                  : 0;

    for (enum row_table table = 0; r == 0 && table < _ROWS_N_TABLES; table++) {
        uint64_t size = 0;

        if (tables & 1u << table)
            r = remove_row(database, table, number, &size);
        if (r == 0 && size > 0)
            r = pieces_discard(database, number, TABLES[table].kind, size);
    }
    return r;
}

void job_row_sanitize(struct job_row *row)
{
    static const struct job_options none = JOB_OPTIONS_DEFAULT;

    if (row->priority >= QUEUE_PRIORITIES)
        row->priority = QUEUE_PRIORITY_DEFAULT;
    if (row->cause > PROTOCOL_CAUSE_DEADLINE)
        row->cause = PROTOCOL_CAUSE_REQUESTED;
    if (row->failed_by >= _ATTEMPT_N_CAUSES)
        row->failed_by = ATTEMPT_CAUSE_NONE;
    if (job_options_check(&row->asked))
        row->asked = none;
}

uint32_t job_row_allows(const struct job_row *row)
{
    const bool wary = row->state == JOB_ROW_RUNNING || row->state == JOB_ROW_HANDED ||
                      row->n_unclean > 1 || row->failed_by == ATTEMPT_CAUSE_SUPERVISOR;

    return row->attempt + !wary;
}

/* Adds the attempts that may have begun unnoticed: see struct job_row. */
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

/* Which bytes of payloads and results to read. */
enum bytes {
    NO_BYTES,      /* the last column is their size */
    BYTES_AT_ONCE, /* those in several pieces are left out */
    ALL_BYTES,
};

/* Reads the payload or the result. Bytes in pieces are at `*ret_pieces`, which the caller frees. */
static int read_bytes(struct database *database, sqlite3_stmt *statement, int at,
                      enum row_table table, enum bytes bytes, struct job_row *row,
                      void **ret_pieces)
{
    uint64_t done = 0;
    int r;

    row->payload_dropped = sqlite3_column_type(statement, at) == SQLITE_NULL;
    if (sqlite3_column_type(statement, at) != SQLITE_INTEGER) {
        row->payload = row_read_blob(statement, at, &row->payload_size);
        return 0;
    }
    row->payload_size = (uint64_t)sqlite3_column_int64(statement, at);
    if (bytes == BYTES_AT_ONCE && row->payload_size > PIECE_SIZE)
        return 0;
    row->payload = *ret_pieces = malloc(row->payload_size);
    if (!*ret_pieces)
        return -ENOMEM;
    r = pieces_read(database, row->number, TABLES[table].kind, *ret_pieces, row->payload_size,
                    &done, INT_MAX);
    return r > 0 ? pieces_refuse(database) : r;
}

/* Returns the column of the payload, which follows the others. */
static int read_row(const struct database *database, sqlite3_stmt *statement, enum row_table table,
                    struct job_row *row)
{
    int at = row_read_record(statement, TABLES[table].record, row);

    if (table == ROWS_JOB)
        count_unclean(row, database->unclean - (uint32_t)sqlite3_column_int64(statement, at++));
    if (table != ROWS_ENDED)
        job_row_sanitize(row);
    else if (row->cause > PROTOCOL_CAUSE_DEPENDENCY)
        row->cause = PROTOCOL_CAUSE_NONE;
    return at;
}

/* Calls `fn` for each row of a bound statement. */
static int read_rows(struct database *database, sqlite3_stmt *statement, enum row_table table,
                     enum bytes bytes, job_row_fn fn, void *userdata)
{
    int r;

    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        struct job_row row = JOB_ROW_NULL;
        const int at = read_row(database, statement, table, &row);
        _cleanup_free_ void *pieces = NULL;

        r = 0;
        if (bytes != NO_BYTES)
            r = read_bytes(database, statement, at, table, bytes, &row, &pieces);
        else
            row.payload_size = (uint64_t)sqlite3_column_int64(statement, at);
        if (r == 0)
            r = fn(userdata, &row);
        if (r != 0)
            break;
    }
    (void)sqlite3_reset(statement);
    return r;
}

struct fetch {
    struct database *database;
    job_row_fn fn;
    void *userdata;
    bool found;
};

static int fetched(void *userdata, const struct job_row *row)
{
    struct fetch *fetch = userdata;
    struct job_row whole = *row;
    sqlite3_stmt *statement = NULL;
    uint64_t size = 0;
    int r = 0;

    fetch->found = true;
    if (row->checkpoint_size > 0) {
        statement =
            database_query(fetch->database, "SELECT bytes FROM checkpoint WHERE number = ?1");
        (void)sqlite3_bind_int64(statement, 1, row->number);
        r = database_step(fetch->database, statement);
    }
    if (r == DATABASE_E_ROW) {
        whole.checkpoint = row_read_blob(statement, 0, &size);
        whole.checkpoint_size = (uint32_t)size;
    }
    r = r < 0 ? r : fetch->fn(fetch->userdata, &whole);
    (void)sqlite3_reset(statement);
    return r;
}

int job_rows_fetch(struct database *database, int64_t number, job_row_fn fn, void *userdata)
{
    struct fetch fetch = {.database = database, .fn = fn, .userdata = userdata};
    sqlite3_stmt *statement =
        database_query(database, "SELECT " COLUMNS
                                 "unclean, " BYTES(job, payload, 0) " FROM job WHERE number = ?1");
    int r;

    (void)sqlite3_bind_int64(statement, 1, number);
    r = read_rows(database, statement, ROWS_JOB, BYTES_AT_ONCE, fetched, &fetch);
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

int job_rows_find_result(struct database *database, int64_t number, const char *id)
{
    sqlite3_stmt *statement =
        database_query(database, "SELECT 1 FROM ended WHERE number = ?1 OR name = ?2");
    int r;

    (void)sqlite3_bind_int64(statement, 1, number);
    row_bind_text(statement, 2, id, (uint32_t)strlen(id));
    r = database_step(database, statement);
    (void)sqlite3_reset(statement);
    return r == DATABASE_E_ROW ? 0 : r < 0 ? r : JOB_ROWS_E_MISSING;
}

static const char SCAN[] = "SELECT " COLUMNS "unclean, " SIZE(payload) " FROM job WHERE number > ?1"
                                                                       " ORDER BY number LIMIT ?2";
static const char SCAN_ALL[] = "SELECT " COLUMNS "unclean, " SIZE(
    payload) " FROM job WHERE number > ?1"
             " UNION ALL SELECT created, started, uid, NULL, "
             "attempt, max_retries, failed, priority, 0,"
             " NULL, 1, NULL, NULL, state, NULL, NULL, NULL, number, grp, "
             "key, name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
             " NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, (SELECT unclean FROM store), " SIZE(
                 result) " FROM ended WHERE number > ?1"
                         " ORDER BY number LIMIT ?2";

int job_rows_scan(struct database *database, int64_t after, bool ended, unsigned max, job_row_fn fn,
                  void *userdata)
{
    sqlite3_stmt *statement = database_query(database, ended ? SCAN_ALL : SCAN);

    (void)sqlite3_bind_int64(statement, 1, after);
    (void)sqlite3_bind_int64(statement, 2, max);
    return read_rows(database, statement, ROWS_JOB, NO_BYTES, fn, userdata);
}

int job_rows_scan_ends(struct database *database, enum row_table table, int64_t key, int64_t number,
                       unsigned max, job_row_fn fn, void *userdata)
{
    sqlite3_stmt *statement = database_query(database, TABLES[table].scan);

    (void)sqlite3_bind_int64(statement, 1, key);
    (void)sqlite3_bind_int64(statement, 2, number);
    (void)sqlite3_bind_int64(statement, 3, max);
    return read_rows(database, statement, table, ALL_BYTES, fn, userdata);
}

/* ---- ties ---- */

static const char *const TIES[_ROWS_N_TIES] = {
    [ROWS_TIED] = "SELECT number, ties, 0 FROM job"
                  " WHERE ties IS NOT NULL AND number > ?1 ORDER BY number LIMIT ?2",
    [ROWS_FATES] = "SELECT number, NULL, state FROM fate"
                   " WHERE number > ?1 ORDER BY number LIMIT ?2",
};

int job_rows_scan_ties(struct database *database, enum row_ties which, int64_t after, unsigned max,
                       job_row_fn fn, void *userdata)
{
    sqlite3_stmt *statement = database_query(database, TIES[which]);
    int r;

    (void)sqlite3_bind_int64(statement, 1, after);
    (void)sqlite3_bind_int64(statement, 2, max);
    while ((r = database_step(database, statement)) == DATABASE_E_ROW) {
        struct job_row row = JOB_ROW_NULL;
        uint64_t size;

        row.number = sqlite3_column_int64(statement, 0);
        row.ties = row_read_blob(statement, 1, &size);
        row.ties_size = (uint32_t)size;
        row.state = (unsigned)sqlite3_column_int(statement, 2);
        r = fn(userdata, &row);
        if (r != 0)
            break;
    }
    (void)sqlite3_reset(statement);
    return r;
}
