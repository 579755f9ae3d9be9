/* SPDX-License-Identifier: MIT */

/* Knows how much of the write-ahead log is on disk. */

#include "shared/base/cleanup.h"
#include "shared/base/list.h"
#include "supervisor/store/database-private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Sizes in the log: its header, and the header of each page. The number that changes whenever
 * SQLite begins the log again. */
#define HEADER  32
#define FRAME   24
#define SALT_AT 16

/* The index of the log, as SQLite documents it: its version, how many pages of the log count, and
 * the log's salt, in the part that is always mapped. */
#define INDEX_VERSION  3007000
#define INDEX_PAGES_AT 16
#define INDEX_SALT_AT  32
#define INDEX_PART     32768

/* By how much the file of the log is lengthened before it is needed. */
#define LENGTHEN_BY (1 << 20)

static int open_log(const struct database *database)
{
    char path[DATABASE_BESIDE_MAX];

    database_beside(database, "-wal", path);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Syncs what an earlier process has left, so that all of it counts. */
static int sync_log(struct database *database, int fd)
{
    int r;

    if (fdatasync(fd) == 0)
        return 0;
    r = database_refuse(database, errno, NULL);
    /* Makes later reads return the state on disk. */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return r;
}

int database_cut_log(struct database *database)
{
    _cleanup_close_ int fd = open_log(database);
    uint32_t salt = 0; /* of an empty log */

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return database_refuse(database, errno, NULL);
    if (database->log_valid < 0)
        return sync_log(database, fd);
    if (pread(fd, &salt, sizeof(salt), SALT_AT) < 0)
        return database_refuse(database, errno, NULL);
    /* A log that was begun again since the last commit holds nothing that is needed. */
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

/* ---- its index ---- */

/* Allocates disk blocks for all of the mapped file. Returns a result of SQLite. The descriptor
 * stays open: closing it would release the locks that SQLite has on this file. */
static int fill(struct database *database)
{
    const char *name = sqlite3_db_filename(database->handle, "main");
    char path[DATABASE_BESIDE_MAX];
    struct stat status;
    int r;

    (void)snprintf(path, sizeof(path), "%s-shm", name ? name : "");
    if (database->index < 0)
        database->index = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (database->index < 0 || fstat(database->index, &status) < 0)
        return SQLITE_OK; /* the index is not in a file */
    r = status.st_size > 0 ? posix_fallocate(database->index, 0, status.st_size) : 0;
    return r == ENOSPC || r == EDQUOT ? SQLITE_FULL : SQLITE_OK;
}

/*
 * Replaces xShmMap. SQLite extends the file by writing one byte in each 4 KiB. If the file system's
 * blocks are smaller, that leaves holes, and on a full disk a write into a hole ends the process by
 * SIGBUS.
 */
static int map_index(sqlite3_file *file, int part, int size, int extend, void volatile **ret)
{
    struct database *database =
        list_entry((sqlite3_io_methods *)(uintptr_t)file->pMethods, struct database, methods);
    int r = database->vfs_methods->xShmMap(file, part, size, extend, ret);

    if (r != SQLITE_OK || !extend)
        return r;
    r = fill(database);
    if (r != SQLITE_OK)
        *ret = NULL;
    return r;
}

void database_fill_index(struct database *database)
{
    sqlite3_file *file = NULL;

    if (sqlite3_file_control(database->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) !=
            SQLITE_OK ||
        !file || !file->pMethods || file->pMethods->iVersion < 2)
        return;
    database->vfs_methods = file->pMethods;
    database->methods = *file->pMethods;
    database->methods.xShmMap = map_index;
    file->pMethods = &database->methods;
}

int database_note_log(struct database *database)
{
    volatile void *index = NULL;
    sqlite3_file *file = NULL;
    uint32_t version, n_pages;

    if (sqlite3_file_control(database->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) !=
            SQLITE_OK ||
        file->pMethods->xShmMap(file, 0, INDEX_PART, 0, &index) != SQLITE_OK || !index)
        return database_refuse(database, EIO, "the index of its log is missing");
    memcpy(&version, (const char *)index, sizeof(version));
    if (version != INDEX_VERSION)
        return database_refuse(database, ENOTSUP, "SQLite has changed the index of its log");
    memcpy(&n_pages, (const char *)index + INDEX_PAGES_AT, sizeof(n_pages));
    memcpy(&database->log_salt, (const char *)index + INDEX_SALT_AT, sizeof(database->log_salt));
    if ((int)n_pages < database->log_pages)
        database->log_size = 0; /* begun again: SQLite may have cut its file */
    database->log_pages = (int)n_pages;
    database->log_valid =
        n_pages == 0 ? 0 : HEADER + (off_t)n_pages * (FRAME + database->page_size);
    return 0;
}

/* To SQLite, the log ends where zeros begin. They are not synced here: the next commit does that.
 */
void database_lengthen_log(struct database *database)
{
    static const char zeros[LENGTHEN_BY];
    const off_t wanted = database->log_valid + LENGTHEN_BY / 2;
    _cleanup_close_ int fd = -1;
    struct stat status;
    ssize_t n = 0;

    if (database->log_valid < 0 || wanted <= database->log_size)
        return;
    fd = open_log(database);
    if (fd < 0 || fstat(fd, &status) < 0)
        return;
    if (wanted > status.st_size)
        n = pwrite(fd, zeros, sizeof(zeros), status.st_size);
    database->log_size = status.st_size + (n > 0 ? n : 0);
}
