/* SPDX-License-Identifier: MIT */

/* Notices that the files of the database are no longer where they were opened. SQLite writes on
 * into files that have been removed or replaced: what it commits then is lost with the process. */

#include "supervisor/store/database-private.h"
#include <errno.h>
#include <sys/stat.h>

/* 0 = none. */
static ino_t inode_of(const struct database *database, const char *suffix)
{
    char path[DATABASE_BESIDE_MAX];
    struct stat status;

    database_beside(database, suffix, path);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

void database_note_place(struct database *database)
{
    database->inode = inode_of(database, "");
    database->log_inode = inode_of(database, "-wal");
}

static int refuse(struct database *database)
{
    database->error = database_refuse(database, ESTALE,
                                      "it was removed or replaced while trouped used it; put it "
                                      "back, or run 'troupectl upgrade' to use what is there");
    return database->error;
}

int database_check_place(struct database *database)
{
    return inode_of(database, "") == database->inode &&
                   inode_of(database, "-wal") == database->log_inode
               ? 0
               : refuse(database);
}

int database_check_file(struct database *database)
{
    return database->inode == 0 || inode_of(database, "") == database->inode ? 0 : refuse(database);
}
