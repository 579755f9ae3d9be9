/* SPDX-License-Identifier: MIT */
#include "supervisor/store/schema.h"

#include <stddef.h>

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

/* How jobs have ended for which others wait. Jobs name others in "ties": job-ties-text.c. */
#define CREATE_TIES                                                                                \
    "CREATE INDEX job_ties ON job (number) WHERE ties IS NOT NULL;"                                \
    "CREATE TABLE fate (number INTEGER PRIMARY KEY, state INTEGER NOT NULL);"

/* Changes of limits that were made at run time: setting-rows.h. */
#define CREATE_LIMITS                                                                              \
    "CREATE TABLE limits ("                                                                        \
    " name TEXT PRIMARY KEY, rate INTEGER NOT NULL, period INTEGER NOT NULL,"                      \
    " burst INTEGER NOT NULL, running INTEGER NOT NULL) WITHOUT ROWID;"

/* Groups that stay stopped: setting-rows.h. */
#define CREATE_STOPPED "CREATE TABLE stopped (name TEXT PRIMARY KEY) WITHOUT ROWID;"

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
    " asked_backoff_max INTEGER, asked_priority INTEGER, asked_cost INTEGER,"
    " cause INTEGER, moved INTEGER, canceller INTEGER, delay INTEGER, time_left INTEGER,"
    " unclean INTEGER, unique_high INTEGER, unique_low INTEGER, progressed INTEGER,"
    " checkpoint INTEGER, debounced INTEGER, ties TEXT, tags TEXT,"
    " traceparent TEXT, batch INTEGER, members_succeeded INTEGER, members_failed INTEGER,"
    " payload BLOB);"
    "CREATE UNIQUE INDEX job_name ON job (name) WHERE name IS NOT NULL;"
    /* Results of jobs that have ended, until they expire. */
    "CREATE TABLE ended ("
    " number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT,"
    " state INTEGER NOT NULL, code INTEGER NOT NULL, reason TEXT,"
    " attempt INTEGER NOT NULL, failed INTEGER NOT NULL, max_retries INTEGER NOT NULL,"
    " priority INTEGER NOT NULL, uid INTEGER NOT NULL, created INTEGER NOT NULL,"
    " started INTEGER, ended INTEGER NOT NULL, cause INTEGER, moved INTEGER,"
    " ties TEXT, tags TEXT, result BLOB);"
    "CREATE UNIQUE INDEX ended_name ON ended (name) WHERE name IS NOT NULL;"
    "CREATE INDEX ended_time ON ended (ended);"
    /* Jobs that are dead letters: as many as are kept. */
    "CREATE TABLE dead ("
    " number INTEGER PRIMARY KEY, grp TEXT NOT NULL, key TEXT, name TEXT,"
    " letter INTEGER NOT NULL, code INTEGER NOT NULL, reason TEXT,"
    " attempt INTEGER NOT NULL, uid INTEGER NOT NULL, created INTEGER NOT NULL,"
    " ended INTEGER NOT NULL, asked_retries INTEGER, asked_timeout INTEGER,"
    " asked_backoff_min INTEGER, asked_backoff_max INTEGER, asked_priority INTEGER,"
    " asked_cost INTEGER, cause INTEGER, unique_high INTEGER, unique_low INTEGER, tags TEXT,"
    " traceparent TEXT, payload BLOB);"
    "CREATE INDEX dead_letter ON dead (letter);" CREATE_PIECES CREATE_SCHEDULE CREATE_LIMITS
        CREATE_STOPPED CREATE_CHECKPOINTS CREATE_TIES
    "PRAGMA application_id = 1416786021; PRAGMA user_version = 7;"
    "COMMIT";

/* Leads from the version of trouped 1.0.0 to this one. */
static const char STEP[] =
    "BEGIN;"
    /* The last run is taken for one that was stopped. */
    "ALTER TABLE store ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;"
    "UPDATE store SET stopped = run;"
    "ALTER TABLE store ADD COLUMN unclean INTEGER NOT NULL DEFAULT 0;"
    /* Durations that were asked for: a date alone would move when the clock is set. */
    "ALTER TABLE job ADD COLUMN delay INTEGER;"
    "ALTER TABLE job ADD COLUMN time_left INTEGER;"
    "ALTER TABLE job ADD COLUMN unclean INTEGER;"
    "ALTER TABLE job ADD COLUMN unique_high INTEGER;"
    "ALTER TABLE job ADD COLUMN unique_low INTEGER;"
    "ALTER TABLE job ADD COLUMN progressed INTEGER;"
    "ALTER TABLE job ADD COLUMN checkpoint INTEGER;"
    "ALTER TABLE job ADD COLUMN debounced INTEGER;"
    "ALTER TABLE job ADD COLUMN asked_cost INTEGER;"
    "ALTER TABLE job ADD COLUMN tags TEXT;"
    "ALTER TABLE job ADD COLUMN traceparent TEXT;"
    "ALTER TABLE dead ADD COLUMN asked_cost INTEGER;"
    "ALTER TABLE dead ADD COLUMN unique_high INTEGER;"
    "ALTER TABLE dead ADD COLUMN unique_low INTEGER;"
    "ALTER TABLE dead ADD COLUMN tags TEXT;"
    "ALTER TABLE dead ADD COLUMN traceparent TEXT;"
    "ALTER TABLE job ADD COLUMN ties TEXT;"
    "ALTER TABLE job ADD COLUMN batch INTEGER;"
    "ALTER TABLE job ADD COLUMN members_succeeded INTEGER;"
    "ALTER TABLE job ADD COLUMN members_failed INTEGER;"
    "ALTER TABLE ended ADD COLUMN ties TEXT;"
    "ALTER TABLE ended ADD COLUMN tags TEXT;"
    "CREATE INDEX dead_letter ON dead (letter);" CREATE_PIECES CREATE_SCHEDULE CREATE_LIMITS
        CREATE_STOPPED CREATE_CHECKPOINTS CREATE_TIES "PRAGMA user_version = 7;"
    "COMMIT";

_Static_assert(SCHEMA_APPLICATION == 1416786021 && SCHEMA_VERSION == 7 && SCHEMA_OLDEST == 6,
               "the numbers in CREATE and STEP");

int schema_migrate(sqlite3 *handle, int version)
{
    int r = SQLITE_OK;

    if (version < SCHEMA_VERSION)
        r = sqlite3_exec(handle, version == 0 ? CREATE : STEP, NULL, NULL, NULL);
    if (!sqlite3_get_autocommit(handle))
        (void)sqlite3_exec(handle, "ROLLBACK", NULL, NULL, NULL);
    return r;
}
