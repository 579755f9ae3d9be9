/* SPDX-License-Identifier: MIT */

/* Adds and removes rows. */

#include "supervisor/history/history-rows.h"

#include "supervisor/store/row-values.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many numbers are tried for a row. */
#define TRIES_MAX 64
/* A row takes this much on disk beside its texts, which are also in the index. */
#define ROW_COST 120

#define ROW history_row
const struct record HISTORY_RECORD = RECORD("history", HISTORY_FIELDS);
#define COLUMNS HISTORY_FIELDS(ROW_COLUMN)

const struct database_format HISTORY_FORMAT = {
    .application = 0x54727048, /* "TrpH" */
    .version = 1,
    /* The log is synced only when it is copied into the file, which stays consistent nevertheless.
     */
    .settings =
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;"
        "PRAGMA cache_size = -16384; PRAGMA mmap_size = 0; PRAGMA journal_size_limit = 33554432",
    .schema =
        "BEGIN IMMEDIATE;"
        "CREATE TABLE grp (name TEXT PRIMARY KEY, keep INTEGER NOT NULL, max INTEGER NOT NULL,"
        " n_rows INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;"
        "CREATE TABLE job (" COLUMNS "bytes, number INTEGER PRIMARY KEY);"
        "CREATE INDEX job_grp ON job (grp);"
        "CREATE VIRTUAL TABLE word USING fts5 (words, content = '', detail = none, columnsize = 0,"
        " tokenize = \"ascii tokenchars '" HISTORY_MARK "'\");"
        "PRAGMA application_id = 1416785992; PRAGMA user_version = 1;"
        "COMMIT",
};

/* ---- copies ---- */

/* Texts come first in the record. */
#define FIRST_TEXT HISTORY_RECORD.fields

static const char **text_of(struct history_row *row, const struct field *field)
{
    return (const char **)(void *)((char *)row + field->at);
}

static uint32_t size_of(const struct history_row *row, const struct field *field)
{
    return *(const uint32_t *)(const void *)((const char *)row + field->size_at);
}

struct history_row *history_row_copy(const struct history_row *row)
{
    struct history_row *copy;
    size_t size = sizeof(*row);
    char *at;

    for (const struct field *field = FIRST_TEXT; field->type == FIELD_TEXT; field++)
        size += size_of(row, field) + 1;
    copy = malloc(size);
    if (!copy)
        return NULL;
    memcpy(copy, row, sizeof(*row));
    copy->size = size;
    at = copy->bytes;
    for (const struct field *field = FIRST_TEXT; field->type == FIELD_TEXT; field++) {
        const uint32_t length = size_of(row, field);

        memcpy(at, *text_of(copy, field), length);
        at[length] = '\0';
        *text_of(copy, field) = at;
        at += length + 1;
    }
    return copy;
}

/* Runs a statement with up to two numbers. */
static int run(struct database *database, const char *sql, int64_t first, int64_t second)
{
    sqlite3_stmt *statement = database_query(database, sql);

    (void)sqlite3_bind_int64(statement, 1, first);
    (void)sqlite3_bind_int64(statement, 2, second);
    return database_step(database, statement);
}

int history_rows_use(struct database *database, const char *group, usec_t keep, uint64_t max)
{
    static const char sql[] =
        "INSERT INTO grp (keep, max, name) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET keep = excluded.keep, max = excluded.max";

    (void)sqlite3_bind_text(database_query(database, sql), 3, group, -1, SQLITE_STATIC);
    return run(database, sql, keep < INT64_MAX ? (int64_t)keep : INT64_MAX,
               max < INT64_MAX ? (int64_t)max : INT64_MAX);
}

/* ---- adding ---- */

static uint64_t cost_of(const struct history_row *row)
{
    return ROW_COST + 2 * ((uint64_t)row->id_size + row->key_size + row->tags_size +
                           row->excerpt_size + row->reason_size);
}

/* Inserts the row under its number, or one of the next. */
static int insert(struct database *database, const struct history_row *row, int64_t *number)
{
    sqlite3_stmt *statement =
        database_query(database, "INSERT INTO job (" COLUMNS
                                 "bytes, number) VALUES (" HISTORY_FIELDS(ROW_PARAMETER) "?, ?)");
    const int at = row_bind_record(statement, 1, &HISTORY_RECORD, row);
    const int64_t ended = (int64_t)row->ended_at, last = *number;
    int r = DATABASE_E_EXISTS;

    row_bind(statement, at, cost_of(row));
    *number = ended <= last && last - ended < HISTORY_LATE_MAX / 2 ? last + 1 : ended;
    for (int i = 0; i < TRIES_MAX && r == DATABASE_E_EXISTS; i++) {
        *number += i;
        (void)sqlite3_bind_int64(statement, at + 1, *number);
        r = database_step(database, statement);
    }
    return r;
}

/* Counts rows of a group that are added or removed. */
static int count(struct database *database, const char *group, int64_t n, int64_t bytes)
{
    static const char sql[] =
        "UPDATE grp SET n_rows = n_rows + ?1, bytes = bytes + ?2 WHERE name = ?3";

    (void)sqlite3_bind_text(database_query(database, sql), 3, group, -1, SQLITE_STATIC);
    return run(database, sql, n, bytes);
}

/* Adds a row to the full-text index, or removes it. */
static int change_words(struct database *database, const char *sql, const struct history_row *row,
                        int64_t number)
{
    sqlite3_stmt *statement = database_query(database, sql);
    char *words = history_words_of_row(row);
    int r;

    if (!words)
        return -ENOMEM;
    (void)sqlite3_bind_int64(statement, 1, number);
    (void)sqlite3_bind_text(statement, 2, words, -1, SQLITE_STATIC);
    r = database_step(database, statement);
    sqlite3_free(words);
    return r;
}

int history_rows_add(struct database *database, const struct history_row *row, int64_t *last)
{
    int64_t number = *last;
    int r = insert(database, row, &number);

    if (r != 0)
        return r;
    *last = number;
    r = change_words(database, "INSERT INTO word (rowid, words) VALUES (?, ?)", row, number);
    return r == 0 ? count(database, row->group, 1, (int64_t)cost_of(row)) : r;
}

/* ---- removal ---- */

/* Removes the oldest row of a group, if its number is at most `until`, or the group has too many
 * bytes. Returns DATABASE_E_ROW if there was one. */
static int remove_oldest(struct database *database, const char *group, int64_t until)
{
    sqlite3_stmt *statement = database_query(
        database, "SELECT " COLUMNS "number, bytes FROM job"
                  " WHERE number = (SELECT min(number) FROM job WHERE grp = ?1)"
                  " AND (number <= ?2 OR (SELECT bytes > max FROM grp WHERE name = ?1))");
    struct history_row row = {.size = 0};
    int64_t number = 0, bytes = 0;
    int r, at;

    (void)sqlite3_bind_text(statement, 1, group, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, until);
    r = database_step(database, statement);
    if (r != DATABASE_E_ROW)
        return r;
    at = row_read_record(statement, &HISTORY_RECORD, &row);
    number = sqlite3_column_int64(statement, at);
    bytes = sqlite3_column_int64(statement, at + 1);
    r = change_words(database, "INSERT INTO word (word, rowid, words) VALUES ('delete', ?, ?)",
                     &row, number);
    (void)sqlite3_reset(statement);
    if (r == 0)
        r = run(database, "DELETE FROM job WHERE number = ?1", number, 0);
    if (r == 0)
        r = count(database, group, -1, -bytes);
    return r == 0 ? DATABASE_E_ROW : r;
}

int history_rows_purge(struct database *database, const char *group, int64_t until, size_t *left)
{
    int r = DATABASE_E_ROW;

    while (*left > 0 && (r = remove_oldest(database, group, until)) == DATABASE_E_ROW)
        --*left;
    return r < 0 ? r : 0;
}

int history_rows_prune(struct database *database, usec_t now, size_t *left)
{
    sqlite3_stmt *groups = database_query(database, "SELECT name, keep FROM grp WHERE n_rows > 0");
    int r = 0;

    while (r == 0 && *left > 0 && (r = database_step(database, groups)) == DATABASE_E_ROW) {
        const char *name = (const char *)sqlite3_column_text(groups, 0);

        r = name ? history_rows_purge(database, name,
                                      (int64_t)now - sqlite3_column_int64(groups, 1), left)
                 : -ENOMEM;
    }
    (void)sqlite3_reset(groups);
    return r;
}

int history_rows_measure(struct database *database, uint64_t *ret_n, usec_t *ret_keep)
{
    sqlite3_stmt *statement =
        database_query(database, "SELECT total(n_rows), min(keep) FROM grp WHERE n_rows > 0");
    const int r = database_step(database, statement);

    if (r != DATABASE_E_ROW)
        return r;
    *ret_n = (uint64_t)sqlite3_column_int64(statement, 0);
    *ret_keep = (usec_t)sqlite3_column_int64(statement, 1);
    (void)sqlite3_reset(statement);
    return 0;
}
