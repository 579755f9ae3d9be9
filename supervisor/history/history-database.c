/* SPDX-License-Identifier: MIT */

/* The file of the history, and its groups. */

#include "shared/base/cleanup.h"
#include "supervisor/history/history-private-rows.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define HISTORY_VERSION     1
#define HISTORY_APPLICATION 0x54727048 /* "TrpH" */
#define BUSY_MSEC           5000
/* The log is synced only when it is copied into the file, which stays consistent nevertheless. */
static const char SETTINGS[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = OFF;"
    "PRAGMA cache_size = -16384; PRAGMA mmap_size = 0; PRAGMA journal_size_limit = 33554432;"
    "PRAGMA wal_autocheckpoint = 4000";

static const char SCHEMA[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE grp (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " keep INTEGER NOT NULL, max INTEGER NOT NULL, n_rows INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL);"
    "CREATE TABLE job (number INTEGER PRIMARY KEY, late INTEGER NOT NULL, grp INTEGER NOT NULL,"
    " state INTEGER NOT NULL, cause INTEGER, failed INTEGER, priority INTEGER NOT NULL,"
    " uid INTEGER NOT NULL, code INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " failures INTEGER NOT NULL, retries INTEGER NOT NULL, took INTEGER NOT NULL, worked INTEGER,"
    " payload_bytes INTEGER, id TEXT NOT NULL, worker TEXT, key BLOB, tags TEXT,"
    " excerpt BLOB, reason TEXT);"
    "CREATE TABLE word (bucket INTEGER NOT NULL, number INTEGER NOT NULL, hash INTEGER NOT NULL,"
    " PRIMARY KEY (bucket, number, hash)) WITHOUT ROWID;"
    "CREATE VIEW history AS SELECT job.id, grp.name AS \"group\", CAST(key AS TEXT) AS key, tags,"
    " CASE state WHEN 4 THEN 'succeeded' WHEN 5 THEN 'rejected' WHEN 6 THEN 'cancelled'"
    " ELSE 'dead' END AS state, (job.number - late - took) / 1e6 AS created_at,"
    " (job.number - late - worked) / 1e6 AS started_at, (job.number - late) / 1e6 AS ended_at,"
    " attempt, failures, code, priority, uid, worker, reason, excerpt"
    " FROM job JOIN grp ON grp.number = job.grp;"
    "PRAGMA application_id = 1416785992; PRAGMA user_version = 1;"
    "COMMIT";

static const char *const SQL[_N_STATEMENTS] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ADD] = "INSERT INTO job (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                      " ?, ?, ?, ?, ?, ?, ?, ?)",
    [STATEMENT_ADD_WORD] = "INSERT OR IGNORE INTO word VALUES (?, ?, ?)",
    [STATEMENT_GET] = "SELECT " COLUMNS " FROM job WHERE number = ?",
    [STATEMENT_SCAN] = "SELECT " COLUMNS " FROM job WHERE number < ?2 ORDER BY number DESC",
    [STATEMENT_SCAN_WORD] = "SELECT number, hash FROM word WHERE bucket = ? AND number < ?"
                            " ORDER BY number DESC",
    [STATEMENT_OLDEST] = "SELECT number FROM word WHERE bucket = ? ORDER BY number LIMIT 1",
    [STATEMENT_REMOVE] = "DELETE FROM job WHERE number = ?",
    [STATEMENT_REMOVE_WORD] = "DELETE FROM word WHERE bucket = ? AND number = ? AND hash = ?",
    [STATEMENT_GROUPS] = "SELECT number, name, keep, max, n_rows, bytes FROM grp",
    [STATEMENT_PUT_GROUP] =
        "INSERT INTO grp (name, keep, max, n_rows, bytes) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET keep = excluded.keep, max = excluded.max,"
        " n_rows = excluded.n_rows, bytes = excluded.bytes RETURNING number",
};

/* ---- errors ---- */

static int refuse(struct history_database *database, const char *path, int error, const char *text)
{
    (void)snprintf(database->problem, sizeof(database->problem), "%s: %s", path,
                   text ? text : strerror(error));
    return -error;
}

static int error_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return EUCLEAN;
    case SQLITE_FULL:
        return ENOSPC;
    case SQLITE_NOMEM:
        return ENOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return EBUSY;
    default:
        return EIO;
    }
}

static int fail(struct history_database *database)
{
    const int error = error_of(sqlite3_errcode(database->handle));
    char text[256];

    (void)snprintf(text, sizeof(text), "%s%s", sqlite3_errmsg(database->handle),
                   error == EUCLEAN ? "; move this file and those beside it away, then run "
                                      "'troupectl upgrade'"
                                    : "");
    return refuse(database, sqlite3_db_filename(database->handle, "main"), error, text);
}

int history_step(struct history_database *database, sqlite3_stmt *statement)
{
    int r = sqlite3_step(statement);

    if (r == SQLITE_ROW)
        return STEP_ROW;
    if (r == SQLITE_DONE)
        r = 0;
    else
        r = (r & 0xff) == SQLITE_CONSTRAINT ? STEP_EXISTS : fail(database);
    (void)sqlite3_reset(statement);
    return r;
}

static int run(struct history_database *database, enum history_statement which)
{
    return history_step(database, database->statements[which]);
}

/* ---- opening ---- */

static int execute(struct history_database *database, const char *sql)
{
    return sqlite3_exec(database->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(database);
}

static int read_number(struct history_database *database, const char *sql, int64_t *ret)
{
    sqlite3_stmt *statement = NULL;
    int r = sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL) == SQLITE_OK
                ? history_step(database, statement)
                : fail(database);

    if (r == STEP_ROW)
        *ret = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return r < 0 ? r : 0;
}

/* Locks the file, which is made if it is missing. SQLite's own locks, which a close of the file
 * would drop, are of another kind, and the file is closed last. */
static int lock_file(struct history_database *database, const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX] = ".";

    if (slash)
        (void)snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path), path);
    if (mkdir(directory, 0700) < 0 && errno != EEXIST)
        return refuse(database, path, errno, NULL);
    database->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (database->lock < 0)
        return refuse(database, path, errno, NULL);
    if (flock(database->lock, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? refuse(database, path, EALREADY, "another trouped uses it")
                                    : refuse(database, path, errno, NULL);
    return 0;
}

static int connect(struct history_database *database, const char *path)
{
    if (sqlite3_open_v2(path, &database->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return database->handle ? fail(database) : refuse(database, path, ENOMEM, NULL);
    (void)sqlite3_extended_result_codes(database->handle, 1);
    (void)sqlite3_busy_timeout(database->handle, BUSY_MSEC);
    return 0;
}

static int check_version(struct history_database *database, const char *path)
{
    int64_t application = 0, version = 0, n_tables = 0;
    int r = read_number(database, "PRAGMA application_id", &application);

    if (r == 0)
        r = read_number(database, "PRAGMA user_version", &version);
    if (r == 0)
        r = read_number(database, "SELECT count(*) FROM sqlite_master", &n_tables);
    if (r < 0)
        return r;
    if (application == HISTORY_APPLICATION && version > HISTORY_VERSION)
        return refuse(database, path, ENOTSUP,
                      "a newer trouped has written it; move this file and those beside it away, "
                      "then run 'troupectl upgrade'");
    if (n_tables > 0 && (application != HISTORY_APPLICATION || version != HISTORY_VERSION))
        return refuse(database, path, EUCLEAN, "this is no history of trouped");
    r = execute(database, SETTINGS);
    return r == 0 && n_tables == 0 ? execute(database, SCHEMA) : r;
}

static int prepare(struct history_database *database)
{
    for (unsigned i = 0; i < _N_STATEMENTS; i++)
        if (sqlite3_prepare_v3(database->handle, SQL[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &database->statements[i], NULL) != SQLITE_OK)
            return fail(database);
    return 0;
}

int history_database_open(struct history_database *database, const char *path)
{
    int r = lock_file(database, path);

    if (r == 0)
        r = connect(database, path);
    if (r == 0)
        r = check_version(database, path);
    if (r == 0)
        r = prepare(database);
    if (r < 0)
        history_database_close(database);
    else
        database->problem[0] = '\0';
    return r;
}

void history_database_close(struct history_database *database)
{
    for (unsigned i = 0; i < _N_STATEMENTS; i++)
        (void)sqlite3_finalize(TAKE_PTR(database->statements[i]));
    (void)sqlite3_close(TAKE_PTR(database->handle));
    database->lock = close_fd(database->lock);
}

int history_begin(struct history_database *database)
{
    return run(database, STATEMENT_BEGIN);
}

int history_commit(struct history_database *database)
{
    return run(database, STATEMENT_COMMIT);
}

void history_rollback(struct history_database *database)
{
    if (database->handle && !sqlite3_get_autocommit(database->handle))
        (void)sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- groups ---- */

int history_read_groups(struct history_database *database, history_group_fn fn, void *userdata)
{
    sqlite3_stmt *statement = database->statements[STATEMENT_GROUPS];
    int r, called = 0;

    while (called == 0 && (r = history_step(database, statement)) == STEP_ROW) {
        const struct history_group group = {
            .number = sqlite3_column_int64(statement, 0),
            .keep = (usec_t)sqlite3_column_int64(statement, 2),
            .max = (uint64_t)sqlite3_column_int64(statement, 3),
            .n_rows = (uint64_t)sqlite3_column_int64(statement, 4),
            .bytes = (uint64_t)sqlite3_column_int64(statement, 5),
        };
        const char *name = (const char *)sqlite3_column_text(statement, 1);

        called = fn(userdata, name ? name : "", &group);
    }
    (void)sqlite3_reset(statement);
    return called != 0 ? called : r;
}

int history_put_group(struct history_database *database, struct history_group *group)
{
    sqlite3_stmt *statement = database->statements[STATEMENT_PUT_GROUP];
    int r;

    (void)sqlite3_bind_text(statement, 1, group->name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)group->keep);
    (void)sqlite3_bind_int64(statement, 3, (int64_t)group->max);
    (void)sqlite3_bind_int64(statement, 4, (int64_t)group->n_rows);
    (void)sqlite3_bind_int64(statement, 5, (int64_t)group->bytes);
    r = history_step(database, statement);
    if (r == STEP_ROW) {
        group->number = sqlite3_column_int64(statement, 0);
        r = history_step(database, statement);
    }
    return r;
}
