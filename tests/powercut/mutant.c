/* SPDX-License-Identifier: MIT */
/*
 * The thread of the store with a mistake, named by $MUTANT:
 *
 *     no-sync       commits are not synced
 *     early-answer  a transaction that adds jobs is reported as committed, but is committed with
 *                   the next one
 *     early-end     like early-answer, but for a transaction that ends jobs
 *
 * The product's own file is built in, with other functions to begin and to commit.
 */
#include "supervisor/store/database.h"
#include <stdlib.h>
#include <string.h>

static int try_begin(struct database *database);
static int commit_later(struct database *database);

#define database_try_begin try_begin
#define database_commit    commit_later
#include "supervisor/store/store-thread.c"
#undef database_try_begin
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

static void prepare(struct database *database)
{
    const char *name = getenv("MUTANT");

    mutant.prepared = true;
    if (!name)
        abort();
    if (strcmp(name, "no-sync") == 0)
        (void)sqlite3_exec(database->handle, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    else if (strcmp(name, "early-answer") == 0)
        mutant.early = SQLITE_INSERT;
    else if (strcmp(name, "early-end") == 0)
        mutant.early = SQLITE_DELETE;
    else
        abort();
    (void)sqlite3_update_hook(database->handle, on_change, NULL);
}

static int try_begin(struct database *database)
{
    if (!mutant.prepared)
        prepare(database);
    if (mutant.open)
        (void)database_commit(database);
    mutant.open = mutant.has_that = false;
    return database_try_begin(database);
}

static int commit_later(struct database *database)
{
    mutant.open = database->error == 0 && mutant.has_that;
    return mutant.open ? 0 : database_commit(database);
}
