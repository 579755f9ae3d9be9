/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/database.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* For other readers: the locks of a killed predecessor end with it. */
#define BUSY_MSEC 10000

static int problem(const struct database *database, const char *what)
{
    fprintf(stderr, "bank: %s: %s\n", what, sqlite3_errmsg(database->handle));
    return -EIO;
}

int database_open(struct database *ret, const char *path, const char *schema)
{
    static const char pragmas[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;";
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int r = 0;

    if (sqlite3_open_v2(path, &ret->handle, flags, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(ret->handle, BUSY_MSEC) != SQLITE_OK ||
        sqlite3_exec(ret->handle, pragmas, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(ret->handle, schema, NULL, NULL, NULL) != SQLITE_OK) {
        r = problem(ret, path);
        database_close(ret);
    }
    return r;
}

void database_close(struct database *database)
{
    (void)sqlite3_close(database->handle);
    database->handle = NULL;
}

static int bind(sqlite3_stmt *statement, const char *types, va_list arguments)
{
    int r = SQLITE_OK;

    for (int i = 0; r == SQLITE_OK && types[i] != '\0'; i++)
        if (types[i] == 's')
            r = sqlite3_bind_text(statement, i + 1, va_arg(arguments, const char *), -1,
                                  SQLITE_TRANSIENT);
        else
            r = sqlite3_bind_int64(statement, i + 1, va_arg(arguments, int64_t));
    return r;
}

static int step_all(sqlite3_stmt *statement, database_row_fn row, void *userdata)
{
    int r, n = 0;

    while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
        if (row)
            row(statement, userdata);
        n++;
    }
    return r == SQLITE_DONE ? n : -EIO;
}

int database_run(struct database *database, const char *sql, database_row_fn row, void *userdata,
                 const char *types, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list arguments;
    int r = -EIO;

    va_start(arguments, types);
    if (sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL) == SQLITE_OK &&
        bind(statement, types, arguments) == SQLITE_OK)
        r = step_all(statement, row, userdata);
    va_end(arguments);
    if (r < 0)
        r = problem(database, sql);
    else if (statement && sqlite3_column_count(statement) == 0)
        r = sqlite3_changes(database->handle);
    (void)sqlite3_finalize(statement);
    return r;
}

void database_text(sqlite3_stmt *row, int column, char *ret, size_t size)
{
    const unsigned char *text = sqlite3_column_text(row, column);

    snprintf(ret, size, "%s", text ? (const char *)text : "");
}
