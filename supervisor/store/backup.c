/* SPDX-License-Identifier: MIT */
#include "supervisor/store/backup.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGES_PER_STEP 256
#define SUFFIX         ".new"

struct name {
    char text[PATH_MAX + sizeof(SUFFIX)];
};

static struct name unfinished(const struct backup *backup)
{
    struct name name;

    (void)snprintf(name.text, sizeof(name.text), "%s" SUFFIX, backup->path);
    return name;
}

static int fail(struct backup *backup, int error, const char *text)
{
    (void)snprintf(backup->problem, sizeof(backup->problem), "%s: %s", backup->path,
                   text ? text : strerror(error));
    return -error;
}

static int fail_target(struct backup *backup)
{
    const int code = backup->target ? sqlite3_errcode(backup->target) : SQLITE_NOMEM;

    return fail(backup, code == SQLITE_FULL ? ENOSPC : EIO,
                backup->target ? sqlite3_errmsg(backup->target) : NULL);
}

static int make_file(struct backup *backup)
{
    const struct name name = unfinished(backup);
    struct stat status;
    int fd;

    if (lstat(backup->path, &status) == 0)
        return fail(backup, EEXIST, NULL);
    (void)unlink(name.text);
    fd = open(name.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail(backup, errno, NULL);
    close_fd(fd);
    return 0;
}

/* A copy that a power cut leaves unfinished does not have its name yet, so it needs no journal. */
static int open_target(struct backup *backup, struct database *database)
{
    const struct name name = unfinished(backup);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;

    if (sqlite3_open_v2(name.text, &backup->target, flags, NULL) != SQLITE_OK ||
        sqlite3_exec(backup->target, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL,
                     NULL, NULL) != SQLITE_OK)
        return fail_target(backup);
    backup->copy = sqlite3_backup_init(backup->target, "main", database->handle, "main");
    return backup->copy ? 0 : fail_target(backup);
}

int backup_begin(struct backup *backup, struct database *database, const char *path)
{
    int r;

    backup->path = path;
    backup->database = database;
    r = make_file(backup);
    if (r < 0) {
        backup->path = NULL;
        return r;
    }
    side_files_hold(database, true);
    r = open_target(backup, database);
    if (r < 0)
        backup_end(backup);
    return r;
}

static int sync_file(struct backup *backup, const char *path)
{
    /* In a directory of somebody else it may have become a pipe. */
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return fail(backup, errno, NULL);
    if (!S_ISREG(status.st_mode))
        return fail(backup, ESTALE, "another program has replaced it");
    if (fsync(fd) < 0)
        return fail(backup, errno, NULL);
    backup->size = (uint64_t)status.st_size;
    return 0;
}

static int sync_directory(struct backup *backup)
{
    const char *slash = strrchr(backup->path, '/');
    char directory[PATH_MAX];
    _cleanup_close_ int fd = -1;

    (void)snprintf(directory, sizeof(directory), "%.*s/", slash ? (int)(slash - backup->path) : 1,
                   slash ? backup->path : ".");
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? fail(backup, errno, NULL) : 0;
}

/* Never in place of a file that another program has made. */
static int give_name(struct backup *backup, const char *unfinished)
{
    int r = renameat2(AT_FDCWD, unfinished, AT_FDCWD, backup->path, RENAME_NOREPLACE);

    if (r < 0 && (errno == EINVAL || errno == ENOSYS)) /* not on this file system */
        r = link(unfinished, backup->path);
    return r < 0 ? fail(backup, errno, NULL) : 0;
}

static int complete(struct backup *backup)
{
    const struct name name = unfinished(backup);
    int r;

    if (sqlite3_close(backup->target) != SQLITE_OK)
        return fail_target(backup);
    backup->target = NULL;
    r = sync_file(backup, name.text);
    if (r == 0)
        r = give_name(backup, name.text);
    return r == 0 ? sync_directory(backup) : r;
}

/* ---- files ---- */

/* The size of the file that the copy's row names; 0 = it names none. */
static uint64_t named_size(struct backup *backup, struct side_file file)
{
    sqlite3_stmt *query = NULL;
    uint64_t size = 0;
    char sql[128];

    (void)snprintf(sql, sizeof(sql),
                   "SELECT %1$s FROM %2$s WHERE number = ?1 AND typeof(%1$s) = 'integer'",
                   row_table_bytes(file.table), row_table_name(file.table));
    if (sqlite3_prepare_v2(backup->target, sql, -1, &query, NULL) == SQLITE_OK &&
        sqlite3_bind_int64(query, 1, file.number) == SQLITE_OK && sqlite3_step(query) == SQLITE_ROW)
        size = (uint64_t)sqlite3_column_int64(query, 0);
    (void)sqlite3_finalize(query);
    return size;
}

static int put_bytes(struct backup *backup, struct side_file file, const void *data, uint64_t size)
{
    sqlite3_stmt *update = NULL;
    char sql[128];
    int r;

    (void)snprintf(sql, sizeof(sql), "UPDATE %s SET %s = ?2 WHERE number = ?1",
                   row_table_name(file.table), row_table_bytes(file.table));
    r = sqlite3_prepare_v2(backup->target, sql, -1, &update, NULL);
    if (r == SQLITE_OK)
        r = sqlite3_bind_int64(update, 1, file.number);
    if (r == SQLITE_OK)
        r = sqlite3_bind_blob64(update, 2, data, size, SQLITE_STATIC);
    if (r == SQLITE_OK)
        r = sqlite3_step(update) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
    r = r == SQLITE_OK ? 0 : fail_target(backup);
    (void)sqlite3_finalize(update);
    return r;
}

/* Files that came after the copy belong to none of its rows. */
static int copy_file(struct backup *backup, struct side_file file)
{
    const uint64_t size = named_size(backup, file);
    const void *data;
    int r = size > 0 ? side_files_read(backup->database, file, size, &data) : 0;

    if (r < 0)
        return fail(backup, -r, "a file beside the database cannot be read");
    r = size > 0 ? put_bytes(backup, file, data, size) : 0;
    side_files_forget(backup->database);
    return r;
}

/* ---- steps ---- */

static int copy_pages(struct backup *backup)
{
    int r = sqlite3_backup_step(backup->copy, PAGES_PER_STEP);

    if (r == SQLITE_OK || r == SQLITE_BUSY || r == SQLITE_LOCKED)
        return BACKUP_E_GOES_ON;
    if (r != SQLITE_DONE)
        return fail(backup, r == SQLITE_FULL ? ENOSPC : EIO, sqlite3_errstr(r));
    r = sqlite3_backup_finish(TAKE_PTR(backup->copy));
    return r == SQLITE_OK ? BACKUP_E_GOES_ON : fail_target(backup);
}

static int copy_next_file(struct backup *backup)
{
    struct side_file file;
    int r;

    if (!side_files_next(backup->database, &backup->files, &file))
        return complete(backup);
    r = copy_file(backup, file);
    return r == 0 ? BACKUP_E_GOES_ON : r;
}

int backup_step(struct backup *backup)
{
    const int r = backup->copy ? copy_pages(backup) : copy_next_file(backup);

    if (r != BACKUP_E_GOES_ON)
        backup_end(backup);
    return r;
}

void backup_end(struct backup *backup)
{
    if (!backup->path)
        return;
    if (backup->copy)
        (void)sqlite3_backup_finish(TAKE_PTR(backup->copy));
    if (backup->target)
        (void)sqlite3_close(TAKE_PTR(backup->target));
    if (backup->files)
        (void)closedir(TAKE_PTR(backup->files));
    side_files_hold(backup->database, false);
    (void)unlink(unfinished(backup).text);
    backup->path = NULL;
}
