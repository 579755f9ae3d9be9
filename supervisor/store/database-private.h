/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between database*.c. */

#include "supervisor/store/database.h"

/* Room for the path of a file beside the database. */
#define DATABASE_BESIDE_MAX (PATH_MAX + 8)
/* Writes the path of the database with this ending. */
void database_beside(const struct database *database, const char *suffix, char *ret);

/* Sets `problem` to what SQLite says about its last call, and returns the -errno of that. */
int database_fail(struct database *database);
/* Sets `problem` to `text`; NULL = that of the error, an errno. Returns -error. */
int database_refuse(struct database *database, int error, const char *text);

/* ---- database-log.c ---- */

/* Leaves only what is on disk in the log. After a failed sync, the kernel shows the rest as if it
 * were on disk too, and SQLite would take it for committed. Returns 0 or -errno. */
int database_cut_log(struct database *database);
/* Notes which part of the log counts: all of it is on disk. For after a commit, and after SQLite
 * has read the log. Returns 0 or -errno. */
int database_note_log(struct database *database);

/* Makes the index of the log, which SQLite maps, take all of its space on disk before it is used.
 * Call it just after opening the handle. */
void database_fill_index(struct database *database);

/* ---- database-place.c ---- */

/* Notes which files are open. For after the opening, once there is a log. */
void database_note_place(struct database *database);
/* Checks that their paths still lead to them: otherwise a commit was not to what the next start
 * reads. Returns 0, or -ESTALE, an error of the transaction. */
int database_check_place(struct database *database);
/* Checks the same of the database's file before it is opened again: what has taken its place is
 * not what the jobs in memory belong to. Another program may have removed the log. */
int database_check_file(struct database *database);
