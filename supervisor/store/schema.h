/* SPDX-License-Identifier: MIT */
#pragma once

/* The tables of the database, and the step from the released version to this one.
 *
 * To change them before a release: change both texts in schema.c, and troupe.db.5; after it, raise
 * the version, and add a step and a test that begins with a database of the version before. */

#include <sqlite3.h>

#define SCHEMA_VERSION     7
#define SCHEMA_OLDEST      6          /* of trouped 1.0.0 */
#define SCHEMA_APPLICATION 0x54727065 /* "Trpe": marks the file as a database of trouped */

/* Brings an open database from `version` (0 = an empty file, SCHEMA_OLDEST or SCHEMA_VERSION) to
 * SCHEMA_VERSION in one transaction. Returns a result of SQLite. */
int schema_migrate(sqlite3 *handle, int version);
