/* SPDX-License-Identifier: MIT */

/* Opening, creation and closing of the database. */

#include "shared/base/cleanup.h"
#include "supervisor/store/database-private.h"
#include "supervisor/store/schema.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Shorter: the caller of a check waits for the answer. */
#define CHECK_BUSY_MSEC 5000
#define MODE_FILE       0600
#define MODE_DIRECTORY  0700

#define SETTINGS                                                                                   \
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF;"            \
    "PRAGMA cache_size = -16384; PRAGMA mmap_size = 0; PRAGMA journal_size_limit = 33554432"

static int fail(struct database *database)
{
    return database_refuse(database, errno, NULL);
}

void database_beside(const struct database *database, const char *suffix, char *ret)
{
    (void)snprintf(ret, DATABASE_BESIDE_MAX, "%s%s", database->path, suffix);
}

/* Locks a file that only this user can open: flock(2) needs no permission beyond opening it. */
static int lock_file(struct database *database)
{
    char path[DATABASE_BESIDE_MAX];
    struct stat status;

    database_beside(database, "-lock", path);
    database->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, MODE_FILE);
    if (database->lock < 0 || fstat(database->lock, &status) < 0)
        return fail(database);
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        fchmod(database->lock, MODE_FILE) < 0)
        return database_refuse(database, EPERM, "its lock is not a file of this user");
    if (flock(database->lock, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? database_refuse(database, EALREADY, "another trouped uses it")
                                    : fail(database);
    return 0;
}

/* Makes the directory, if it is missing, and locks the database. */
static int enter_directory(struct database *database)
{
    const char *slash = strrchr(database->path, '/');
    char directory[PATH_MAX] = ".";

    if (slash)
        (void)snprintf(directory, sizeof(directory), "%.*s", (int)(slash - database->path),
                       database->path);
    if (mkdir(directory, MODE_DIRECTORY) < 0 && errno != EEXIST)
        return fail(database);
    database->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* SQLite does not say that a file system is read-only. */
    if (database->directory < 0 || access(directory, W_OK) < 0)
        return fail(database);
    return lock_file(database);
}

static int open_handle(struct database *database, const char *path, const char *vfs, int mode)
{
    if (sqlite3_open_v2(path, &database->handle, mode | SQLITE_OPEN_NOMUTEX, vfs) != SQLITE_OK)
        return database->handle ? database_fail(database) : -ENOMEM;
    (void)sqlite3_extended_result_codes(database->handle, 1);
    database_fill_index(database);
    return 0;
}

static int connect(struct database *database, const char *path, const char *vfs)
{
    int r = open_handle(database, path, vfs, SQLITE_OPEN_READWRITE);

    if (r < 0)
        return r;
    (void)sqlite3_busy_timeout(database->handle, DATABASE_BUSY_MSEC);
    /* The store makes its checkpoints itself, and not within a commit. */
    (void)sqlite3_wal_autocheckpoint(database->handle, 0);
    database->log_pages = 0;
    return 0;
}

static int execute(struct database *database, const char *sql)
{
    return sqlite3_exec(database->handle, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : database_fail(database);
}

/* Reads the first column of the only row. */
static int read_number(struct database *database, const char *sql, int64_t *ret)
{
    sqlite3_stmt *statement = database_query(database, sql);
    int r = database_step(database, statement);

    if (r != DATABASE_E_ROW)
        return r < 0 ? r : database_refuse(database, EUCLEAN, "its table \"store\" is empty");
    *ret = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return 0;
}

static void disconnect(struct database *database, bool leave_log)
{
    for (size_t i = 0; i < database->n_queries; i++)
        (void)sqlite3_finalize(database->queries[i].statement);
    database->n_queries = 0;
    if (leave_log && database->handle)
        (void)sqlite3_db_config(database->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_close(TAKE_PTR(database->handle));
    database->index = close_fd(database->index);
}

static int migrate(struct database *database, int version)
{
    return schema_migrate(database->handle, version) == SQLITE_OK ? 0 : database_fail(database);
}

/* Fills the file `path`, which is empty. */
static int fill(struct database *database, const char *path, const char *vfs)
{
    int r = connect(database, path, vfs);

    if (r == 0)
        r = execute(database, SETTINGS);
    if (r == 0)
        r = migrate(database, 0);
    if (r == 0 && sqlite3_wal_checkpoint_v2(database->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                            NULL, NULL) != SQLITE_OK)
        r = database_fail(database);
    disconnect(database, r < 0);
    return r;
}

/* Makes an empty file, in place of any that is there. */
static int make_file(struct database *database, const char *path)
{
    int fd;

    (void)unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
    if (fd < 0)
        return fail(database);
    close_fd(fd);
    return 0;
}

/* Makes the file under another name first: an empty or unfinished database is never taken for one
 * that had no jobs. */
static int create(struct database *database, const char *vfs)
{
    char path[DATABASE_BESIDE_MAX], log[DATABASE_BESIDE_MAX];
    int r;

    database_beside(database, "-wal", log);
    if (access(log, F_OK) == 0)
        return database_refuse(database, EUCLEAN, "it is missing, but its log is there");
    database_beside(database, ".new", path);
    r = make_file(database, path);
    if (r == 0)
        r = fill(database, path, vfs);
    if (r < 0)
        return r;
    return rename(path, database->path) < 0 || fsync(database->directory) < 0 ? fail(database) : 0;
}

/* Makes the database if there is none. SQLite must not see an empty file: it would remove the
 * log. */
static int look_at_file(struct database *database, const char *vfs)
{
    struct stat status;

    if (stat(database->path, &status) < 0)
        return errno == ENOENT ? create(database, vfs) : fail(database);
    return status.st_size == 0 ? database_refuse(database, EUCLEAN, "it is empty") : 0;
}

/* Checks that the file is ours. Returns the version of its tables. */
static int read_version(struct database *database, int64_t *ret)
{
    int64_t application;
    int r = read_number(database, "PRAGMA application_id", &application);

    if (r == 0)
        r = read_number(database, "PRAGMA user_version", ret);
    if (r < 0)
        return r;
    if (application != SCHEMA_APPLICATION || *ret < 1)
        return database_refuse(database, EUCLEAN, "this is no database of trouped");
    if (*ret > SCHEMA_VERSION)
        return database_refuse(database, ENOTSUP,
                               "a newer trouped has written it, which has to be installed again");
    if (*ret < SCHEMA_OLDEST)
        return database_refuse(database, ENOTSUP,
                               "an earlier trouped has written it, and this one cannot read it");
    return 0;
}

/* In version 6, a large payload was a file, and its size was in the row. */
static int refuse_files(struct database *database, int64_t version)
{
    static const char sql[] = "SELECT (SELECT count(*) FROM job WHERE typeof(payload) = 'integer')"
                              " + (SELECT count(*) FROM ended WHERE typeof(result) = 'integer')"
                              " + (SELECT count(*) FROM dead WHERE typeof(payload) = 'integer')";
    int64_t n = 0;
    int r = version == SCHEMA_OLDEST ? read_number(database, sql, &n) : 0;

    return r == 0 && n > 0
               ? database_refuse(database, ENOTSUP,
                                 "an earlier trouped has kept large payloads in files, which this "
                                 "one cannot read: let that one end these jobs, and purge their "
                                 "results and dead letters")
               : r;
}

/* Checks the file, and brings it up to date. */
static int adopt(struct database *database)
{
    int64_t version;
    int r = read_version(database, &version);

    if (r == 0)
        r = refuse_files(database, version);
    if (r == 0)
        r = execute(database, SETTINGS);
    return r == 0 ? migrate(database, (int)version) : r;
}

/* Notes which files are open. */
static int note_files(struct database *database)
{
    int64_t page_size = 0;
    int r = read_number(database, "PRAGMA page_size", &page_size);

    database->page_size = (int)page_size;
    if (r == 0)
        r = database_note_log(database);
    database_note_place(database);
    return r;
}

static int begin_run(struct database *database)
{
    static const char count[] =
        "UPDATE store SET unclean = unclean + (?1 AND stopped <> run), run = run + 1"
        " RETURNING run, id_key, unclean";
    sqlite3_stmt *statement;
    int r = note_files(database);

    if (r < 0)
        return r;
    database_begin(database);
    statement = database_query(database, count);
    (void)sqlite3_bind_int(statement, 1, database->opened && *database->opened == 0);
    r = database_step(database, statement);
    if (r != DATABASE_E_ROW)
        return r < 0 ? r : database_refuse(database, EUCLEAN, "its table \"store\" is empty");
    database->run = (uint64_t)sqlite3_column_int64(statement, 0);
    database->id_key = (uint64_t)sqlite3_column_int64(statement, 1);
    database->unclean = (uint32_t)sqlite3_column_int64(statement, 2);
    (void)sqlite3_reset(statement);
    r = database_commit(database);
    if (r == 0 && database->opened)
        *database->opened = 1;
    return r;
}

void database_end_run(struct database *database)
{
    int r = database_try_begin(database);

    if (r == 0)
        r = database_step(database, database_query(database, "UPDATE store SET stopped = run"));
    if (r == 0)
        r = database_commit(database);
    if (r < 0)
        database_rollback(database);
}

/* Before the database is opened. */
static int begin(struct database *database, const char *path)
{
    int r;

    database->path = path;
    database->problem[0] = '\0';
    database->error = 0;
    r = database_check_file(database);
    return r == 0 ? enter_directory(database) : r;
}

int database_open(struct database *database, const char *path, const char *vfs)
{
    int r = begin(database, path);

    if (r == 0)
        r = database_cut_log(database);
    if (r == 0)
        r = look_at_file(database, vfs);
    if (r == 0)
        r = connect(database, path, vfs);
    if (r == 0)
        r = adopt(database);
    if (r == 0)
        r = begin_run(database);
    if (r < 0)
        database_close(database, true);
    return r;
}

/* ---- other databases ---- */

static int adopt_format(struct database *database, const struct database_format *format)
{
    int64_t application = 0, version = 0, n_tables = 0;
    int r = read_number(database, "PRAGMA application_id", &application);

    if (r == 0)
        r = read_number(database, "PRAGMA user_version", &version);
    if (r == 0)
        r = read_number(database, "SELECT count(*) FROM sqlite_master", &n_tables);
    if (r < 0)
        return r;
    if (application == format->application && version > format->version)
        return database_refuse(database, ENOTSUP,
                               "a newer trouped has written it; move this file and those beside "
                               "it away, then run 'troupectl upgrade'");
    if (n_tables > 0 && (application != format->application || version != format->version))
        return database_refuse(database, EUCLEAN, "this is no such database of trouped");
    r = execute(database, format->settings);
    return r == 0 && n_tables == 0 ? execute(database, format->schema) : r;
}

static int touch(struct database *database)
{
    const int fd = open(database->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, MODE_FILE);

    if (fd < 0)
        return fail(database);
    close_fd(fd);
    return 0;
}

int database_open_format(struct database *database, const char *path,
                         const struct database_format *format)
{
    int r = begin(database, path);

    if (r == 0)
        r = touch(database);
    if (r == 0)
        r = connect(database, path, NULL);
    if (r == 0)
        r = adopt_format(database, format);
    if (r == 0)
        r = note_files(database);
    if (r < 0)
        database_close(database, true);
    return r;
}

int database_check_format(const char *path, char problem[DATABASE_PROBLEM_MAX])
{
    struct database database = DATABASE_NULL;
    int64_t version;
    int r;

    database.path = path;
    r = open_handle(&database, path, NULL, SQLITE_OPEN_READONLY);
    if (r == 0)
        (void)sqlite3_busy_timeout(database.handle, CHECK_BUSY_MSEC);
    if (r == 0)
        r = read_version(&database, &version);
    if (r == 0)
        r = refuse_files(&database, version);
    (void)snprintf(problem, DATABASE_PROBLEM_MAX, "%s", database.problem);
    database_close(&database, true);
    return r == -ENOTSUP ? r : 0;
}

void database_close(struct database *database, bool leave_log)
{
    disconnect(database, leave_log);
    if (!leave_log) {
        database->log_valid = -1;
        database->file = (struct database_file){0};
    }
    database->log_size = 0;
    database->lock = close_fd(database->lock);
    database->directory = close_fd(database->directory);
}
