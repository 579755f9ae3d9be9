/* SPDX-License-Identifier: MIT */

/* Knows how much of the write-ahead log is on disk. */

#include "shared/base/cleanup.h"
#include "supervisor/store/database-private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Sizes in the log: its header, and the header of each page. The number that changes whenever
 * SQLite begins the log anew. */
#define HEADER  32
#define FRAME   24
#define SALT_AT 16

static int open_log(const struct database *database)
{
    char path[DATABASE_BESIDE_MAX];

    database_beside(database, "-wal", path);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* 0 in an empty log. */
static int read_salt(struct database *database, int fd, uint32_t *ret)
{
    *ret = 0;
    return pread(fd, ret, sizeof(*ret), SALT_AT) < 0 ? database_refuse(database, errno, NULL) : 0;
}

/* Syncs what an earlier process has left, so that all of it counts. */
static int sync_log(struct database *database, int fd)
{
    struct stat status;

    if (fdatasync(fd) < 0) {
        const int r = database_refuse(database, errno, NULL);

        /* What is read from now on is what is on disk. */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        return r;
    }
    if (fstat(fd, &status) < 0)
        return database_refuse(database, errno, NULL);
    database->log_valid = status.st_size;
    return read_salt(database, fd, &database->log_salt);
}

int database_cut_log(struct database *database)
{
    _cleanup_close_ int fd = open_log(database);
    uint32_t salt;
    int r;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return database_refuse(database, errno, NULL);
    if (database->log_valid < 0)
        return sync_log(database, fd);
    r = read_salt(database, fd, &salt);
    if (r < 0)
        return r;
    /* A log that was begun anew since the last commit holds nothing that is needed. */
    return ftruncate(fd, salt == database->log_salt ? database->log_valid : 0) < 0
               ? database_refuse(database, errno, NULL)
               : 0;
}

/* The size of so many pages as the query says; 0 on error. */
static uint64_t read_pages(struct database *database, const char *sql)
{
    sqlite3_stmt *statement = database_query(database, sql);
    uint64_t n = 0;

    if (database_step(database, statement) == DATABASE_E_ROW)
        n = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return n * (uint64_t)database->page_size;
}

struct database_room database_measure_room(struct database *database)
{
    _cleanup_close_ int fd = open_log(database);
    struct statvfs disk;
    struct stat log, file;
    uint64_t size;

    if (fd < 0 || fstat(fd, &log) < 0 || fstatvfs(fd, &disk) < 0 || stat(database->path, &file) < 0)
        return (struct database_room){0};
    size = read_pages(database, "PRAGMA page_count");
    return (struct database_room){
        .free = read_pages(database, "PRAGMA freelist_count"),
        .growth = size > (uint64_t)file.st_size ? size - (uint64_t)file.st_size : 0,
        .log = (uint64_t)log.st_size,
        .disk = (uint64_t)disk.f_bavail * disk.f_frsize,
    };
}

void database_limit(struct database *database, bool limited)
{
    /* The smallest possible limit is the present size; the largest is the default. */
    (void)sqlite3_exec(database->handle,
                       limited ? "PRAGMA max_page_count = 1" : "PRAGMA max_page_count = 1073741823",
                       NULL, NULL, NULL);
}

int database_note_commit(struct database *database, int pages_before)
{
    database->log_valid = HEADER + (off_t)database->log_pages * (FRAME + database->page_size);
    if (database->log_pages <= pages_before || pages_before == 0) {
        _cleanup_close_ int fd = open_log(database);

        return fd < 0 ? database_refuse(database, errno, NULL)
                      : read_salt(database, fd, &database->log_salt);
    }
    return 0;
}
