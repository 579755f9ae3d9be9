/* SPDX-License-Identifier: MIT */
/*
 * The thread of the store with a mistake, named by $MUTANT:
 *
 *     no-sync       commits are not synced
 *     no-file-sync  files with large payloads and results are not synced
 *     early-answer  a transaction that adds jobs is reported as committed, and is committed with
 * the next one early-end     the same for one that ends jobs
 *
 * The product's own file is built in, with other functions to begin and to commit.
 */
#include "supervisor/store/database.h"
#include <stdlib.h>
#include <string.h>

static void begin(struct database *database);
static int commit_later(struct database *database);

#define database_begin  begin
#define database_commit commit_later
#include "supervisor/store/store-thread.c"
#undef database_begin
#undef database_commit

static struct {
    bool prepared;
    int early;     /* the operation that is reported too early */
    bool has_that; /* in this transaction */
    bool open;     /* a transaction that was reported */
} mutant;

static void on_change(void *userdata, int operation, const char *schema, const char *table,
                      sqlite3_int64 row)
{
    if (operation == mutant.early && strcmp(table, "job") == 0)
        mutant.has_that = true;
}

static int (*open_really)(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *file, int flags,
                          int *ret_flags);

static int sync_nothing(sqlite3_file *file, int flags)
{
    return SQLITE_OK;
}

/* database-files.c opens them as if they were this kind of file, which nothing else is here. */
static int open_unsynced_file(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *file,
                              int flags, int *ret_flags)
{
    static sqlite3_io_methods methods;
    int r = open_really(vfs, path, file, flags, ret_flags);

    if (r != SQLITE_OK || !(flags & SQLITE_OPEN_SUPER_JOURNAL))
        return r;
    methods = *file->pMethods;
    methods.xSync = sync_nothing;
    file->pMethods = &methods;
    return r;
}

static void sync_no_files(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    open_really = vfs->xOpen;
    vfs->xOpen = open_unsynced_file;
}

static void prepare(struct database *database)
{
    const char *name = getenv("MUTANT");

    mutant.prepared = true;
    if (!name)
        abort();
    if (strcmp(name, "no-sync") == 0)
        (void)sqlite3_exec(database->handle, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    else if (strcmp(name, "no-file-sync") == 0)
        sync_no_files();
    else if (strcmp(name, "early-answer") == 0)
        mutant.early = SQLITE_INSERT;
    else if (strcmp(name, "early-end") == 0)
        mutant.early = SQLITE_DELETE;
    else
        abort();
    (void)sqlite3_update_hook(database->handle, on_change, NULL);
}

static void begin(struct database *database)
{
    if (!mutant.prepared)
        prepare(database);
    if (mutant.open)
        (void)database_commit(database);
    mutant.open = mutant.has_that = false;
    database_begin(database);
}

static int commit_later(struct database *database)
{
    mutant.open = database->error == 0 && mutant.has_that;
    return mutant.open ? 0 : database_commit(database);
}
