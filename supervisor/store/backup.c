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
    r = make_file(backup);
    if (r < 0) {
        backup->path = NULL;
        return r;
    }
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
        return fail(backup, ESTALE, "somebody has replaced it meanwhile");
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

/* Never in place of a file that somebody has made meanwhile. */
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
    int r = sqlite3_backup_finish(TAKE_PTR(backup->copy));

    if (r != SQLITE_OK || sqlite3_close(backup->target) != SQLITE_OK)
        return fail_target(backup);
    backup->target = NULL;
    r = sync_file(backup, name.text);
    if (r == 0)
        r = give_name(backup, name.text);
    return r == 0 ? sync_directory(backup) : r;
}

int backup_step(struct backup *backup)
{
    int r = sqlite3_backup_step(backup->copy, PAGES_PER_STEP);

    if (r == SQLITE_OK || r == SQLITE_BUSY || r == SQLITE_LOCKED)
        return BACKUP_E_GOES_ON;
    if (r == SQLITE_DONE)
        r = complete(backup);
    else
        r = fail(backup, r == SQLITE_FULL ? ENOSPC : EIO, sqlite3_errstr(r));
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
    (void)unlink(unfinished(backup).text);
    backup->path = NULL;
}
