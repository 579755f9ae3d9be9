/* SPDX-License-Identifier: MIT */
#include "supervisor/store/schema.h"

#include "shared/base/cleanup.h"
#include <stdbool.h>

/* Step N leads from version N to version N + 1, and ends by writing that version. */
static const char *const STEPS[] = {
    "BEGIN;"
    /* One row. */
    "CREATE TABLE store (run INTEGER NOT NULL, id_key INTEGER NOT NULL);"
    "INSERT INTO store VALUES (0, random());"
    /* Jobs that have not ended. Each index makes adding and removing a job about a sixth slower. */
    "CREATE TABLE job ("
    " number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT,"
    " priority INTEGER NOT NULL, state INTEGER NOT NULL, cancel INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, failed INTEGER NOT NULL, max_retries INTEGER NOT NULL,"
    " created INTEGER NOT NULL, started INTEGER, due INTEGER, deadline INTEGER,"
    " uid INTEGER NOT NULL, keep INTEGER NOT NULL,"
    " asked_retries INTEGER, asked_timeout INTEGER, asked_backoff_min INTEGER,"
    " asked_backoff_max INTEGER, asked_priority INTEGER,"
    " cause INTEGER, payload BLOB);"
    "CREATE UNIQUE INDEX job_name ON job (name) WHERE name IS NOT NULL;"
    /* Results of jobs that have ended, until they expire. */
    "CREATE TABLE ended ("
    " number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT,"
    " state INTEGER NOT NULL, code INTEGER NOT NULL, reason TEXT,"
    " attempt INTEGER NOT NULL, failed INTEGER NOT NULL, max_retries INTEGER NOT NULL,"
    " priority INTEGER NOT NULL, uid INTEGER NOT NULL, created INTEGER NOT NULL,"
    " started INTEGER, ended INTEGER NOT NULL,"
    " result BLOB);"
    "CREATE UNIQUE INDEX ended_name ON ended (name) WHERE name IS NOT NULL;"
    "CREATE INDEX ended_time ON ended (ended);"
    /* Jobs that are dead letters. */
    "CREATE TABLE dead ("
    " number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT,"
    " letter INTEGER NOT NULL, code INTEGER NOT NULL, reason TEXT,"
    " attempt INTEGER NOT NULL, uid INTEGER NOT NULL, created INTEGER NOT NULL,"
    " ended INTEGER NOT NULL, asked_retries INTEGER, asked_timeout INTEGER,"
    " asked_backoff_min INTEGER, asked_backoff_max INTEGER, asked_priority INTEGER,"
    " cause INTEGER, payload BLOB);"
    "PRAGMA application_id = 1416786021; PRAGMA user_version = 1;"
    "COMMIT",
    "BEGIN;"
    "ALTER TABLE job ADD COLUMN moved INTEGER;"
    "PRAGMA user_version = 2;"
    "COMMIT",
    /* Payloads and results may be an integer, the size of a file (database-files.h). */
    "BEGIN;"
    "PRAGMA user_version = 3;"
    "COMMIT",
    "BEGIN;"
    "ALTER TABLE job ADD COLUMN canceller INTEGER;"
    "ALTER TABLE ended ADD COLUMN timed_out INTEGER;"
    "PRAGMA user_version = 4;"
    "COMMIT",
    "BEGIN;"
    "ALTER TABLE ended ADD COLUMN cancel_requested INTEGER;"
    "ALTER TABLE ended ADD COLUMN moved INTEGER;"
    "PRAGMA user_version = 5;"
    "COMMIT",
    /* enum protocol_cause, which only the reason told before. */
    "BEGIN;"
    "ALTER TABLE ended RENAME COLUMN timed_out TO cause;"
    "UPDATE ended SET cause = CASE"
    " WHEN state = 7 AND reason LIKE 'its payload is lost: %' THEN 6"
    " WHEN state = 7 THEN 5"
    " WHEN cause THEN 3"
    " WHEN reason LIKE 'withdrawn by uid %' THEN 2"
    " WHEN reason LIKE 'cancelled%' THEN 1"
    " ELSE 4 END WHERE state IN (6, 7);"
    "ALTER TABLE ended DROP COLUMN cancel_requested;"
    "PRAGMA user_version = 6;"
    "COMMIT",
    /* Adds the requested durations: a date alone would move when the clock is set. */
    "BEGIN;"
    "ALTER TABLE job ADD COLUMN delay INTEGER;"
    "ALTER TABLE job ADD COLUMN time_left INTEGER;"
    "PRAGMA user_version = 7;"
    "COMMIT",
    /* Ends of trouped that was not stopped. The last one is taken for a stop. */
    "BEGIN;"
    "ALTER TABLE store ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;"
    "UPDATE store SET stopped = run;"
    "ALTER TABLE store ADD COLUMN unclean INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN unclean INTEGER;"
    "PRAGMA user_version = 8;"
    "COMMIT",
};

_Static_assert(SCHEMA_APPLICATION == 1416786021, "the number in step 0");
_Static_assert(ELEMENTS(STEPS) == SCHEMA_VERSION, "a step for each version");

/* Returns whether there is a table `table` without a column "cause". */
static bool lacks_cause(sqlite3 *handle, const char *table)
{
    static const char sql[] = "SELECT count(*) > 0 AND NOT max(name = 'cause')"
                              " FROM pragma_table_info(?1)";
    sqlite3_stmt *query = NULL;
    bool lacks = false;

    if (sqlite3_prepare_v2(handle, sql, -1, &query, NULL) == SQLITE_OK &&
        sqlite3_bind_text(query, 1, table, -1, SQLITE_STATIC) == SQLITE_OK)
        lacks = sqlite3_step(query) == SQLITE_ROW && sqlite3_column_int(query, 0);
    (void)sqlite3_finalize(query);
    return lacks;
}

/* Adds columns of version 1 that came to it before the first release, and that a database from
 * before may lack. Idempotent. Returns a result of SQLite. */
static int complete_version_1(sqlite3 *handle)
{
    int r = SQLITE_OK;

    if (lacks_cause(handle, "job"))
        r = sqlite3_exec(handle, "ALTER TABLE job ADD COLUMN cause INTEGER", NULL, NULL, NULL);
    if (r == SQLITE_OK && lacks_cause(handle, "dead"))
        r = sqlite3_exec(handle, "ALTER TABLE dead ADD COLUMN cause INTEGER", NULL, NULL, NULL);
    return r;
}

int schema_migrate(sqlite3 *handle, int version)
{
    int r = version == 1 ? complete_version_1(handle) : SQLITE_OK;

    for (; r == SQLITE_OK && version < SCHEMA_VERSION; version++)
        r = sqlite3_exec(handle, STEPS[version], NULL, NULL, NULL);
    if (!sqlite3_get_autocommit(handle))
        (void)sqlite3_exec(handle, "ROLLBACK", NULL, NULL, NULL);
    return r;
}
