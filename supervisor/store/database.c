/* SPDX-License-Identifier: MIT */
#include "supervisor/store/database.h"

#include "supervisor/store/database-private.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int error_of_io(const struct database *database, int code)
{
    const int error = sqlite3_system_errno(database->handle);

    if (code == SQLITE_IOERR_NOMEM)
        return -ENOMEM;
    /* After a failed sync, the kernel may have dropped data: more space does not mend that. */
    if (code != SQLITE_IOERR_FSYNC && code != SQLITE_IOERR_DIR_FSYNC &&
        (error == ENOSPC || error == EDQUOT))
        return -ENOSPC;
    return -EIO;
}

/* The -errno of a result of SQLite that is no success. */
static int error_of(const struct database *database, int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EUCLEAN;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_IOERR:
        return error_of_io(database, sqlite3_extended_errcode(database->handle));
    default:
        return -EIO;
    }
}

/* SQLite's text; for a failed system call also that of its error. */
static void describe(struct database *database, int error)
{
    const int code = sqlite3_errcode(database->handle) & 0xff;
    const int cause = code == SQLITE_IOERR || code == SQLITE_CANTOPEN
                          ? sqlite3_system_errno(database->handle)
                          : 0;
    char text[128];

    (void)snprintf(text, sizeof(text), "%s%s%s", sqlite3_errmsg(database->handle),
                   cause != 0 ? ": " : "", cause != 0 ? strerror(cause) : "");
    (void)database_refuse(database, error, text);
}

int database_refuse(struct database *database, int error, const char *text)
{
    static const char remedy[] = "; restore a backup, or move this file and those beside it away, "
                                 "then run 'troupectl upgrade'";

    (void)snprintf(database->problem, sizeof(database->problem), "%s: %s%s", database->path,
                   text ? text : strerror(error), error == EUCLEAN ? remedy : "");
    return -error;
}

int database_fail(struct database *database)
{
    const int r = error_of(database, sqlite3_errcode(database->handle));

    if (database->error == 0) {
        describe(database, -r);
        database->error = r;
    }
    return r;
}

int database_step(struct database *database, sqlite3_stmt *statement)
{
    int r;

    if (!statement)
        return database_fail(database);
    r = sqlite3_step(statement);
    if (r == SQLITE_ROW)
        return DATABASE_E_ROW;
    if (r == SQLITE_DONE) {
        (void)sqlite3_reset(statement);
        return 0;
    }
    r = sqlite3_extended_errcode(database->handle);
    if (r == SQLITE_CONSTRAINT_UNIQUE || r == SQLITE_CONSTRAINT_PRIMARYKEY ||
        r == SQLITE_CONSTRAINT_ROWID)
        r = DATABASE_E_EXISTS;
    else if (r == SQLITE_INTERRUPT)
        r = DATABASE_E_INTERRUPTED;
    else
        r = database_fail(database);
    (void)sqlite3_reset(statement);
    return r;
}

sqlite3_stmt *database_query(struct database *database, const char *sql)
{
    struct database_query *query = database->queries;

    for (; query < database->queries + database->n_queries; query++)
        if (query->sql == sql)
            return query->statement;
    assert(database->n_queries < DATABASE_QUERIES_MAX);
    if (sqlite3_prepare_v3(database->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &query->statement,
                           NULL) != SQLITE_OK) {
        (void)database_fail(database);
        return NULL;
    }
    query->sql = sql;
    database->n_queries++;
    return query->statement;
}

void database_begin(struct database *database)
{
    database->error = 0;
    database->n_bytes = 0;
    (void)database_step(database, database_query(database, "BEGIN IMMEDIATE"));
}

int database_try_begin(struct database *database)
{
    (void)sqlite3_busy_timeout(database->handle, 0);
    database_begin(database);
    (void)sqlite3_busy_timeout(database->handle, DATABASE_BUSY_MSEC);
    return database->error;
}

int database_commit(struct database *database)
{
    int r = database->error;

    if (r == 0)
        r = database_step(database, database_query(database, "COMMIT"));
    if (r == 0)
        r = database_check_place(database);
    return r == 0 ? database_note_log(database) : r;
}

void database_rollback(struct database *database)
{
    if (!sqlite3_get_autocommit(database->handle))
        (void)sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
}

int database_checkpoint(struct database *database)
{
    int r;

    database->error = 0;
    r = sqlite3_wal_checkpoint_v2(database->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return r == SQLITE_OK || r == SQLITE_BUSY ? 0 : database_fail(database);
}
