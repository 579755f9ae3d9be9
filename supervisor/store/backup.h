/* SPDX-License-Identifier: MIT */
#pragma once

/* Copies the open database to another file, a bounded piece at a time, while transactions go on.
 * Files beside it become values in their rows, so that the copy is one file.
 * Belongs to the thread of the database. */

#include "supervisor/store/database.h"
#include <sqlite3.h>
#include <stdint.h>

struct backup {
    const char *path; /* NULL = none */
    sqlite3 *target;
    sqlite3_backup *copy;               /* of the pages; NULL = done, and the files are next */
    struct database *database;          /* borrowed */
    DIR *files;                         /* that are being copied; NULL = not begun, or none */
    uint64_t size;                      /* of the finished copy */
    char problem[DATABASE_PROBLEM_MAX]; /* why it failed, with the file */
};

enum {
    _BACKUP_E_SUCCESS,
    BACKUP_E_GOES_ON,
};

/* Begins a copy to the file `path`, which must not exist and gets mode 0600; until the end it has
 * ".new" behind its name. `path` is borrowed until the end. Returns 0 or -errno; -EEXIST. */
int backup_begin(struct backup *backup, struct database *database, const char *path);

/* Copies a piece, outside of transactions. Returns BACKUP_E_GOES_ON, or after backup_end() 0 with
 * a complete and synced file, or -errno. */
int backup_step(struct backup *backup);

/* Gives up and removes what there is. Idempotent; also for a zeroed struct. Called before the
 * database is closed. */
void backup_end(struct backup *backup);
