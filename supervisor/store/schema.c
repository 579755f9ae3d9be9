/* SPDX-License-Identifier: MIT */
#include "supervisor/store/schema.h"

#include "shared/base/cleanup.h"

/* Large payloads and results: pieces.h. */
#define CREATE_PIECES                                                                              \
    "CREATE TABLE piece ("                                                                         \
    " number INTEGER NOT NULL, kind INTEGER NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL," \
    " PRIMARY KEY (number, kind, part));"                                                          \
    "CREATE TABLE unused ("                                                                        \
    " number INTEGER NOT NULL, kind INTEGER NOT NULL, run INTEGER NOT NULL,"                       \
    " PRIMARY KEY (number, kind)) WITHOUT ROWID;"

/* What schedules have decided: schedule-rows.h. */
#define CREATE_SCHEDULE                                                                            \
    "CREATE TABLE schedule ("                                                                      \
    " name TEXT PRIMARY KEY, reached INTEGER NOT NULL, seen INTEGER NOT NULL, waiting INTEGER,"    \
    " firing INTEGER, paused_at INTEGER, resumed_at INTEGER, ended_at INTEGER,"                    \
    " failures INTEGER NOT NULL, pause INTEGER NOT NULL, slots BLOB NOT NULL) WITHOUT ROWID;"

/* Checkpoints of jobs in "job". The trigger tests a column, so that the end of any other job costs
 * no look-up. */
#define CREATE_CHECKPOINTS                                                                         \
    "CREATE TABLE checkpoint (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL);"                   \
    "CREATE TRIGGER job_checkpoint AFTER DELETE ON job WHEN old.checkpoint IS NOT NULL"            \
    " BEGIN DELETE FROM checkpoint WHERE number = old.number; END;"

static const char CREATE[] =
    "BEGIN;"
    /* One row. */
    "CREATE TABLE store (run INTEGER NOT NULL, id_key INTEGER NOT NULL,"
    " stopped INTEGER NOT NULL, unclean INTEGER NOT NULL);"
    "INSERT INTO store VALUES (0, random(), 0, 0);"
    /* Jobs that have not ended. Each index makes adding and removing a job about a sixth slower. */
    "CREATE TABLE job ("
    " number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT,"
    " priority INTEGER NOT NULL, state INTEGER NOT NULL, cancel INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, failed INTEGER NOT NULL, max_retries INTEGER NOT NULL,"
    " created INTEGER NOT NULL, started INTEGER, due INTEGER, deadline INTEGER,"
    " uid INTEGER NOT NULL, keep INTEGER NOT NULL,"
    " asked_retries INTEGER, asked_timeout INTEGER, asked_backoff_min INTEGER,"
    " asked_backoff_max INTEGER, asked_priority INTEGER,"
    " cause INTEGER, moved INTEGER, canceller INTEGER, delay INTEGER, time_left INTEGER,"
    " unclean INTEGER, unique_high INTEGER, unique_low INTEGER, progressed INTEGER,"
    " checkpoint INTEGER, debounced INTEGER, payload BLOB);"
    "CREATE UNIQUE INDEX job_name ON job (name) WHERE name IS NOT NULL;"
    /* Results of jobs that have ended, until they expire. */
    "CREATE TABLE ended ("
    " number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT,"
    " state INTEGER NOT NULL, code INTEGER NOT NULL, reason TEXT,"
    " attempt INTEGER NOT NULL, failed INTEGER NOT NULL, max_retries INTEGER NOT NULL,"
    " priority INTEGER NOT NULL, uid INTEGER NOT NULL, created INTEGER NOT NULL,"
    " started INTEGER, ended INTEGER NOT NULL, cause INTEGER, moved INTEGER,"
    " result BLOB);"
    "CREATE UNIQUE INDEX ended_name ON ended (name) WHERE name IS NOT NULL;"
    "CREATE INDEX ended_time ON ended (ended);"
    /* Jobs that are dead letters: as many as are kept. */
    "CREATE TABLE dead ("
    " number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT,"
    " letter INTEGER NOT NULL, code INTEGER NOT NULL, reason TEXT,"
    " attempt INTEGER NOT NULL, uid INTEGER NOT NULL, created INTEGER NOT NULL,"
    " ended INTEGER NOT NULL, asked_retries INTEGER, asked_timeout INTEGER,"
    " asked_backoff_min INTEGER, asked_backoff_max INTEGER, asked_priority INTEGER,"
    " cause INTEGER, payload BLOB);"
    "CREATE INDEX dead_letter ON dead (letter);" CREATE_PIECES CREATE_SCHEDULE CREATE_CHECKPOINTS
    "PRAGMA application_id = 1416786021; PRAGMA user_version = 16;"
    "COMMIT";

/* Step N leads from version SCHEMA_OLDEST + N to the next one, and ends by writing that. */
static const char *const STEPS[] = {
    /* Adds the requested durations: a date alone would move when the clock is set. */
    "BEGIN;"
    "ALTER TABLE job ADD COLUMN delay INTEGER;"
    "ALTER TABLE job ADD COLUMN time_left INTEGER;"
    "PRAGMA user_version = 7;"
    "COMMIT",
    /* Counts ends of trouped that was not stopped. The last one is taken for a stop. */
    "BEGIN;"
    "ALTER TABLE store ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;"
    "UPDATE store SET stopped = run;"
    "ALTER TABLE store ADD COLUMN unclean INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN unclean INTEGER;"
    "PRAGMA user_version = 8;"
    "COMMIT",
    /* No payload is a file any more. */
    "PRAGMA user_version = 9",
    /* Large payloads of live jobs got a table; the last step removes it. */
    "PRAGMA user_version = 10",
    /* Large payloads and results are pieces; those that are in rows stay there. */
    "BEGIN;" CREATE_PIECES "PRAGMA user_version = 11;"
    "COMMIT",
    "BEGIN;"
    "CREATE TABLE IF NOT EXISTS job_payload (number INTEGER PRIMARY KEY, payload BLOB NOT NULL);"
    "INSERT INTO piece SELECT number, 0, 0, payload FROM job_payload;"
    "UPDATE job SET payload = length(large.payload) FROM job_payload AS large"
    " WHERE large.number = job.number;"
    "DROP TRIGGER IF EXISTS job_removed;"
    "DROP TABLE job_payload;"
    "CREATE INDEX dead_letter ON dead (letter);"
    "PRAGMA user_version = 12;"
    "COMMIT",
    "BEGIN;" CREATE_SCHEDULE "PRAGMA user_version = 13;"
    "COMMIT",
    /* Unique keys, as digests. */
    "BEGIN;"
    "ALTER TABLE job ADD COLUMN unique_high INTEGER;"
    "ALTER TABLE job ADD COLUMN unique_low INTEGER;"
    "PRAGMA user_version = 14;"
    "COMMIT",
    "BEGIN;"
    "ALTER TABLE job ADD COLUMN progressed INTEGER;"
    "ALTER TABLE job ADD COLUMN checkpoint INTEGER;" CREATE_CHECKPOINTS "PRAGMA user_version = 15;"
    "COMMIT",
    "BEGIN;"
    "ALTER TABLE job ADD COLUMN debounced INTEGER;"
    "PRAGMA user_version = 16;"
    "COMMIT",
};

_Static_assert(SCHEMA_APPLICATION == 1416786021 && SCHEMA_VERSION == 16, "the numbers in CREATE");
_Static_assert(ELEMENTS(STEPS) == SCHEMA_VERSION - SCHEMA_OLDEST, "a step for each version");

int schema_migrate(sqlite3 *handle, int version)
{
    int r = SQLITE_OK;

    if (version == 0)
        r = sqlite3_exec(handle, CREATE, NULL, NULL, NULL);
    else
        for (; r == SQLITE_OK && version < SCHEMA_VERSION; version++)
            r = sqlite3_exec(handle, STEPS[version - SCHEMA_OLDEST], NULL, NULL, NULL);
    if (!sqlite3_get_autocommit(handle))
        (void)sqlite3_exec(handle, "ROLLBACK", NULL, NULL, NULL);
    return r;
}
