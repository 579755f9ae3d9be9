/* SPDX-License-Identifier: MIT */
#include "supervisor/store/database-files.h"

#include "shared/base/cleanup.h"
#include "supervisor/store/database-private.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DIRECTORY      "-blobs"
#define DIRECTORY_MODE 0700
#define FILE_MODE      0600
/* The longest name, and what separates it from the directory. */
#define NAME_MAX_SIZE 32

/* SQLite's files take no more than 131071 bytes in a call. */
#define PIECE (UINT64_C(1) << 16)
/* How many bytes are written and synced at a time. */
#define STEP (UINT64_C(4) << 20)

#define KIND(table, column)                                                                        \
    {                                                                                              \
        table, column,                                                                             \
            "SELECT 1 FROM " table " WHERE number = ?1 AND typeof(" column ") = 'integer'"         \
    }

static const struct {
    const char *table, *column;
    const char *named; /* whether the row names a file */
} KINDS[_ROWS_N_TABLES] = {
    [ROWS_JOB] = KIND("job", "payload"),
    [ROWS_ENDED] = KIND("ended", "result"),
    [ROWS_DEAD] = KIND("dead", "payload"),
};

/* SQLite wants the name of a file to end with two zeros. */
struct side_path {
    char text[DATABASE_BESIDE_MAX + NAME_MAX_SIZE + 1];
};

const char *row_table_name(enum row_table table)
{
    return KINDS[table].table;
}

const char *row_table_bytes(enum row_table table)
{
    return KINDS[table].column;
}

static struct side_path path_of(const struct database *database, struct side_file file)
{
    struct side_path path = {0};

    (void)snprintf(path.text, sizeof(path.text) - 1, "%s" DIRECTORY "/%s.%" PRId64, database->path,
                   KINDS[file.table].table, file.number);
    return path;
}

static void directory_of(const struct database *database, char *ret)
{
    database_beside(database, DIRECTORY, ret);
}

bool side_files_take(uint64_t size)
{
    return size >= SIDE_FILE_MIN;
}

/* ---- lists ---- */

/* Without memory, the file is found at the next opening. */
static void list_add(struct side_file_list *list, struct side_file file)
{
    const size_t n = list->n_allocated > 0 ? 2 * list->n_allocated : 8;

    if (list->n == list->n_allocated) {
        struct side_file *files = realloc(list->files, n * sizeof(*files));

        if (!files)
            return;
        list->files = files;
        list->n_allocated = n;
    }
    list->files[list->n++] = file;
}

static void list_remove(struct side_file_list *list, struct side_file file)
{
    for (size_t i = list->n; i-- > 0;)
        if (list->files[i].table == file.table && list->files[i].number == file.number)
            list->files[i] = list->files[--list->n];
}

static void list_deinit(struct side_file_list *list)
{
    free(list->files);
    *list = (struct side_file_list){0};
}

/* ---- files ---- */

/* Returns the -errno of a failed call of SQLite's system layer. Reads errno. */
static int error_of(int code)
{
    const bool is_sync = code == SQLITE_IOERR_FSYNC;

    if (code == SQLITE_FULL || (!is_sync && (errno == ENOSPC || errno == EDQUOT)))
        return -ENOSPC;
    if (!is_sync && errno == EFBIG)
        return -EFBIG;
    return code == SQLITE_NOMEM ? -ENOMEM : -EIO;
}

/* Records such an error, which ends the transaction, and returns it. */
static int fail(struct database *database, const char *path, int code)
{
    const int error = error_of(code);

    if (database->error == 0) {
        (void)snprintf(database->problem, sizeof(database->problem), "%s: %s", path,
                       error == -EIO ? sqlite3_errstr(code) : strerror(-error));
        database->error = error == -ENOSPC ? error : -EIO;
    }
    return error;
}

static int damaged(struct database *database, const char *path)
{
    char text[DATABASE_BESIDE_MAX + 64];

    (void)snprintf(text, sizeof(text), "its file %.*s is missing or damaged", DATABASE_BESIDE_MAX,
                   path);
    if (database->error == 0)
        database->error = database_refuse(database, EUCLEAN, text);
    return -EUCLEAN;
}

struct open_file {
    sqlite3_file *file;
};

static void close_file(struct open_file *open)
{
    if (open->file && open->file->pMethods)
        (void)open->file->pMethods->xClose(open->file);
    free(open->file);
    open->file = NULL;
}

#define _cleanup_file_ __attribute__((cleanup(close_file)))

/* Returns a result of SQLite. */
static int open_file(const struct database *database, const struct side_path *path, int flags,
                     struct open_file *ret)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(database->vfs);

    ret->file = vfs ? calloc(1, (size_t)vfs->szOsFile) : NULL;
    if (!ret->file)
        return SQLITE_NOMEM;
    return vfs->xOpen(vfs, path->text, ret->file, flags | SQLITE_OPEN_SUPER_JOURNAL, NULL);
}

/* Returns `n` bytes from `at` on: a pointer into `data`, or a copy from `fd` in `buffer`. Returns
 * NULL on error. */
static const char *bytes_at(const char *data, int fd, uint64_t at, uint64_t n, char *buffer)
{
    if (data)
        return data + at;
    for (uint64_t done = 0; done < n;) {
        const ssize_t r = pread(fd, buffer + done, n - done, (off_t)(at + done));

        if (r <= 0)
            return NULL;
        done += (uint64_t)r;
    }
    return buffer;
}

/* Writes and syncs bytes up to `end`. Returns a result of SQLite. */
static int write_bytes(sqlite3_file *file, const void *data, int fd, uint64_t at, uint64_t end)
{
    char buffer[PIECE];
    int r = at == 0 ? file->pMethods->xTruncate(file, 0) : SQLITE_OK;

    while (r == SQLITE_OK && at < end) {
        const uint64_t n = end - at < PIECE ? end - at : PIECE;
        const char *bytes = bytes_at(data, fd, at, n, buffer);

        r = bytes ? file->pMethods->xWrite(file, bytes, (int)n, (sqlite3_int64)at) : SQLITE_NOMEM;
        at += n;
    }
    return r == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : r;
}

/* Makes it, if it is missing, and its name permanent. */
static int make_directory(struct database *database)
{
    char path[DATABASE_BESIDE_MAX];

    directory_of(database, path);
    if (mkdir(path, DIRECTORY_MODE) == 0)
        return fsync(database->directory) < 0 ? fail(database, path, SQLITE_IOERR_FSYNC) : 0;
    return errno == EEXIST ? 0 : fail(database, path, SQLITE_CANTOPEN);
}

static int sync_directory(struct database *database)
{
    char path[DATABASE_BESIDE_MAX];
    _cleanup_close_ int fd = -1;

    directory_of(database, path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? fail(database, path, SQLITE_IOERR_FSYNC) : 0;
}

static bool has_room(const struct database *database, uint64_t size, uint64_t spare)
{
    struct statvfs disk;

    return statvfs(database->path, &disk) < 0 ||
           (uint64_t)disk.f_bavail * disk.f_frsize >= size + spare;
}

static void remove_file(struct database *database, struct side_file file);

/* Returns the entry of the file among those that are begun, or NULL. */
static struct side_file *find_begun(const struct side_files *side, struct side_file file)
{
    for (size_t i = 0; i < side->begun.n; i++)
        if (side->begun.files[i].table == file.table && side->begun.files[i].number == file.number)
            return &side->begun.files[i];
    return NULL;
}

/* Adds an entry with 0 bytes to those that are begun, and returns it, or NULL without memory. */
static struct side_file *begin_file(struct database *database, struct side_file file)
{
    struct side_files *side = &database->side;

    file.at = 0;
    list_remove(&side->dropped, file);
    list_remove(&side->gone, file);
    list_remove(&side->written, file);
    list_add(&side->begun, file);
    side->n++;
    return find_begun(side, file);
}

/* Removes a file that cannot be written; the rest of the transaction does not depend on it. */
static int give_up(struct database *database, struct side_file file, int error)
{
    remove_file(database, file);
    return error;
}

int side_files_begin(struct database *database, struct side_file file, const void *data, int fd,
                     uint64_t size, uint64_t spare)
{
    const struct side_path path = path_of(database, file);
    struct side_file *begun = find_begun(&database->side, file);
    _cleanup_file_ struct open_file open = {0};
    uint64_t end;
    int r;

    if (begun && begun->at == size)
        return 0;
    if (!begun && !has_room(database, size, spare))
        return -ENOSPC;
    r = begun ? 0 : make_directory(database);
    if (!begun && r == 0)
        begun = begin_file(database, file);
    if (r < 0 || !begun)
        return r < 0 ? r : -ENOMEM;
    end = size - begun->at > STEP ? begun->at + STEP : size;
    errno = 0;
    r = open_file(database, &path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &open);
    if (r == SQLITE_OK)
        r = chmod(path.text, FILE_MODE) < 0 ? SQLITE_IOERR
                                            : write_bytes(open.file, data, fd, begun->at, end);
    if (r != SQLITE_OK && error_of(r) != -EIO)
        return give_up(database, file, error_of(r));
    r = r != SQLITE_OK   ? fail(database, path.text, r)
        : begun->at == 0 ? sync_directory(database)
                         : 0;
    if (r < 0)
        return r;
    database->side.bytes += end - begun->at;
    begun->at = end;
    return end == size ? 0 : SIDE_FILES_E_MORE;
}

int side_files_write(struct database *database, struct side_file file, const void *data, int fd,
                     uint64_t size)
{
    int r;

    do
        r = side_files_begin(database, file, data, fd, size, 0);
    while (r == SIDE_FILES_E_MORE);
    if (r == 0) {
        list_remove(&database->side.begun, file);
        list_remove(&database->side.dropped, file);
        list_remove(&database->side.gone, file);
        list_add(&database->side.written, file);
    }
    return r;
}

static int read_bytes(struct database *database, const char *path, sqlite3_file *file,
                      uint64_t size)
{
    sqlite3_int64 found = 0;
    int r = file->pMethods->xFileSize(file, &found);

    for (uint64_t at = 0; r == SQLITE_OK && (uint64_t)found == size && at < size;) {
        const uint64_t n = size - at < PIECE ? size - at : PIECE;

        r = file->pMethods->xRead(file, (char *)database->side.read + at, (int)n,
                                  (sqlite3_int64)at);
        at += n;
    }
    if (r != SQLITE_OK)
        return fail(database, path, r);
    return (uint64_t)found == size ? 0 : damaged(database, path);
}

void side_files_forget(struct database *database)
{
    free(TAKE_PTR(database->side.read));
}

int side_files_read(struct database *database, struct side_file file, uint64_t size,
                    const void **ret)
{
    const struct side_path path = path_of(database, file);
    _cleanup_file_ struct open_file open = {0};
    int r;

    side_files_forget(database);
    database->side.read = malloc(size);
    *ret = database->side.read;
    if (!*ret)
        return -ENOMEM;
    if (access(path.text, F_OK) < 0 && errno == ENOENT)
        return damaged(database, path.text);
    errno = 0;
    r = open_file(database, &path, SQLITE_OPEN_READONLY, &open);
    return r == SQLITE_OK ? read_bytes(database, path.text, open.file, size)
                          : fail(database, path.text, r);
}

/* ---- removal ---- */

static void remove_file(struct database *database, struct side_file file)
{
    const struct side_path path = path_of(database, file);
    struct side_files *side = &database->side;
    struct stat status;

    list_remove(&side->begun, file);
    if (stat(path.text, &status) < 0 || unlink(path.text) < 0)
        return;
    side->n -= side->n > 0;
    side->bytes -= side->bytes < (uint64_t)status.st_size ? side->bytes : (uint64_t)status.st_size;
}

void side_files_drop(struct database *database, struct side_file file)
{
    if (database->side.n > 0 && access(path_of(database, file).text, F_OK) == 0)
        list_add(&database->side.dropped, file);
}

static void remove_gone(struct database *database)
{
    struct side_file_list *gone = &database->side.gone;

    while (!database->side.held && gone->n > 0)
        remove_file(database, gone->files[--gone->n]);
}

void side_files_committed(struct database *database)
{
    struct side_files *side = &database->side;

    side_files_forget(database);
    side->written.n = 0;
    while (side->dropped.n > 0)
        list_add(&side->gone, side->dropped.files[--side->dropped.n]);
    remove_gone(database);
}

/* Whether a row names the file; true if that is not known. */
static bool is_named(struct database *database, struct side_file file)
{
    sqlite3_stmt *statement = database_query(database, KINDS[file.table].named);
    int r;

    (void)sqlite3_bind_int64(statement, 1, file.number);
    r = database_step(database, statement);
    (void)sqlite3_reset(statement);
    return r != 0;
}

void side_files_rolled_back(struct database *database)
{
    struct side_files *side = &database->side;

    side_files_forget(database);
    side->dropped.n = 0;
    /* After another error, it is not known what is on disk before the database is open again. */
    while (database->error == -ENOSPC && side->written.n > 0) {
        const struct side_file file = side->written.files[--side->written.n];

        if (!is_named(database, file))
            remove_file(database, file);
    }
    side->written.n = 0;
}

void side_files_hold(struct database *database, bool held)
{
    database->side.held = held;
    remove_gone(database);
}

/* ---- opening ---- */

/* Returns false if the name is none of ours. */
static bool parse_name(const char *name, struct side_file *ret)
{
    char again[NAME_MAX_SIZE], table[8];

    if (sscanf(name, "%7[a-z].%" SCNd64, table, &ret->number) != 2)
        return false;
    for (ret->table = 0; ret->table < _ROWS_N_TABLES; ret->table++) {
        (void)snprintf(again, sizeof(again), "%s.%" PRId64, KINDS[ret->table].table, ret->number);
        if (strcmp(name, again) == 0)
            return true;
    }
    return false;
}

static void count_file(struct database *database, struct side_file file)
{
    struct stat status;

    database->side.n++;
    if (stat(path_of(database, file).text, &status) == 0)
        database->side.bytes += (uint64_t)status.st_size;
}

bool side_files_next(const struct database *database, DIR **directory, struct side_file *ret)
{
    char path[DATABASE_BESIDE_MAX];
    const struct dirent *entry;

    directory_of(database, path);
    if (!*directory)
        *directory = opendir(path);
    while (*directory && (entry = readdir(*directory)))
        if (parse_name(entry->d_name, ret))
            return true;
    if (*directory)
        (void)closedir(TAKE_PTR(*directory));
    return false;
}

int side_files_open(struct database *database)
{
    struct side_file file;
    DIR *directory = NULL;

    side_files_close(database);
    while (side_files_next(database, &directory, &file)) {
        count_file(database, file);
        if (!is_named(database, file))
            remove_file(database, file);
    }
    return database->error;
}

void side_files_close(struct database *database)
{
    struct side_files *side = &database->side;

    list_deinit(&side->begun);
    list_deinit(&side->written);
    list_deinit(&side->dropped);
    list_deinit(&side->gone);
    free(side->read);
    *side = (struct side_files){0};
}

bool side_files_are_left(const struct database *database)
{
    char path[DATABASE_BESIDE_MAX];

    directory_of(database, path);
    return rmdir(path) < 0 && errno != ENOENT;
}
