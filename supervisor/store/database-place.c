/* SPDX-License-Identifier: MIT */

/* Notices that the files of the database are no longer where they were opened. SQLite writes on
 * into files that have been removed or replaced: what it commits then is lost with the process. */

#include "supervisor/store/database-private.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static struct database_file file_at(const struct database *database, const char *suffix)
{
    char path[DATABASE_BESIDE_MAX];
    struct statx status;

    database_beside(database, suffix, path);
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &status) < 0)
        return (struct database_file){0};
    return (struct database_file){
        .device = makedev(status.stx_dev_major, status.stx_dev_minor),
        .inode = status.stx_ino,
        .born_sec = status.stx_btime.tv_sec,
        .born_nsec = status.stx_btime.tv_nsec,
    };
}

static bool is_same(const struct database_file *a, const struct database_file *b)
{
    return a->inode == b->inode && a->born_sec == b->born_sec && a->born_nsec == b->born_nsec;
}

static bool is_at(const struct database *database, const char *suffix,
                  const struct database_file *file)
{
    const struct database_file found = file_at(database, suffix);

    return is_same(&found, file) && found.device == file->device;
}

void database_note_place(struct database *database)
{
    database->file = file_at(database, "");
    database->log = file_at(database, "-wal");
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
    return is_at(database, "", &database->file) && is_at(database, "-wal", &database->log)
               ? 0
               : refuse(database);
}

/* A file system that is mounted again may have another device number. Not all file systems have
 * times of birth, without which an inode may be another file's. */
int database_check_file(struct database *database)
{
    const struct database_file found = file_at(database, ""), *file = &database->file;
    const bool known = file->born_sec != 0 || found.device == file->device;

    return file->inode == 0 || (known && is_same(&found, file)) ? 0 : refuse(database);
}
