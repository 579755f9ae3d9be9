/* SPDX-License-Identifier: MIT */
#pragma once

/* The tables of the database, and the steps from each version to the next.
 *
 * To change them: add a step, a test that begins with a database of the version before, and the
 * columns in troupe.db.5. */

#include <sqlite3.h>

#define SCHEMA_VERSION     16
#define SCHEMA_OLDEST      6          /* that can be brought up to date */
#define SCHEMA_APPLICATION 0x54727065 /* "Trpe": marks the file as a database of trouped */

/* Brings an open database from `version` (0 = an empty file, or from SCHEMA_OLDEST on) to
 * SCHEMA_VERSION, each step in a transaction. Returns a result of SQLite. */
int schema_migrate(sqlite3 *handle, int version);
