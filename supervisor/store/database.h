/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One connection to the SQLite database that holds durable jobs. All calls are synchronous and come
 * from one thread: the storage thread (store.h), or a unit test.
 *
 * The database uses a write-ahead log and syncs each commit. Other programs may read it at the same
 * time; an exclusive lock on the file "troupe.db-lock", which only its user can open, keeps a
 * second trouped out.
 */

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DATABASE_QUERIES_MAX 64
/* How long to wait for another program's lock before jobs are refused. */
#define DATABASE_BUSY_MSEC   60000
#define DATABASE_PROBLEM_MAX (PATH_MAX + 256)

/* A prepared statement, found by the address of its text. */
struct database_query {
    const char *sql;
    sqlite3_stmt *statement;
};

/* Identifies a file. Once it is removed, another file may get its inode: that has another time of
 * creation. */
struct database_file {
    dev_t device;
    uint64_t inode;     /* 0 = there is no file */
    int64_t born_sec;   /* 0 = the file system does not keep it */
    uint32_t born_nsec; /* likewise */
};

struct database {
    sqlite3 *handle;                       /* NULL = closed */
    sqlite3_io_methods methods;            /* of its file: the VFS's own, except xShmMap */
    const sqlite3_io_methods *vfs_methods; /* the VFS's own */
    const char *path;
    int directory; /* of its files; -1 = none */
    int lock;      /* the locked file "troupe.db-lock"; -1 = none */
    int index;     /* the file with the index of the log; -1 = not opened */
    struct database_query queries[DATABASE_QUERIES_MAX];
    size_t n_queries;
    bool bare;        /* the disk is full: ends are written without large bytes; set by the store */
    uint64_t n_bytes; /* of payloads and results, which this transaction has written */
    uint64_t run;     /* how often it was opened */
    /* The owner's, in memory that outlives a crash of the supervisor: whether it was open in this
     * run. 0 = no process can still know which jobs were begun, so the next opening counts an end
     * without a stop, and sets it. */
    uint8_t *opened;
    uint32_t unclean; /* how many runs have ended without a stop */
    uint64_t id_key;  /* for job-number.h */
    int page_size;
    int log_pages;     /* in the write-ahead log, with those of the last commit */
    off_t log_valid;   /* bytes of the log that are on disk; -1 = not known yet */
    off_t log_size;    /* of its file, as last seen */
    uint32_t log_salt; /* changes whenever the log begins again */

    struct database_file file; /* which the next opening must find again; 0 = any */
    struct database_file log;
    int error;                          /* the first of this transaction that ends it; 0 = none */
    char problem[DATABASE_PROBLEM_MAX]; /* its text, with the file; "" = none */
};

/* clang-format off */
#define DATABASE_NULL {.directory = -1, .lock = -1, .index = -1, .log_valid = -1}
/* clang-format on */

/*
 * Opens the database at `path`, which is borrowed; makes it, with its directory, if there is none,
 * and brings older versions up to date. Counts the opening in `run`: this commit also syncs what an
 * earlier process may have left unsynced in the log. `vfs` is for tests; NULL = the system's files.
 *
 * Returns 0, or on error the following, with `problem` set and nothing left open:
 *   -EUCLEAN   the file is damaged or no database of trouped; it is left as it is
 *   -ENOTSUP   a newer trouped wrote it, or one that is too old
 *   -EALREADY  another process uses it
 *   -ESTALE    this struct was open before, and its file has been removed or replaced
 *   -ENOSPC    there is no space
 *   -errno     anything else; -EIO for a failed read, write or sync
 */
int database_open(struct database *database, const char *path, const char *vfs);

/* A database of other tables: history.db. */
struct database_format {
    int64_t application, version; /* which `schema` sets in the file */
    const char *settings, *schema;
};
/* Opens it, or makes it, with its directory; it counts no runs. Returns like database_open(). */
int database_open_format(struct database *database, const char *path,
                         const struct database_format *format);

/*
 * Returns -ENOTSUP, with `problem` set, if a newer trouped wrote the database at `path`, which
 * another process may be using. Otherwise 0: database_open() reports other problems.
 */
int database_check_format(const char *path, char problem[DATABASE_PROBLEM_MAX]);

/* Notes that the rows know of all attempts that were begun. Otherwise, the run counts as one that
 * has ended without a stop. */
void database_end_run(struct database *database);

/* Closes the connection. With `leave_log`, as after a failure, the log is not copied into the
 * database. Then the next opening of this struct accepts only the same file, and first cuts off
 * what a failed commit has left in the log. Idempotent. */
void database_close(struct database *database, bool leave_log);

void database_begin(struct database *database);
/* Like database_begin(), but does not wait if another program holds the lock for writing. Returns
 * 0, -EBUSY for such a lock, or another error of the transaction. */
int database_try_begin(struct database *database);
/* Returns 0, or the first error since database_begin(): the caller rolls back then, and closes the
 * database unless the error is -ENOSPC. */
int database_commit(struct database *database);
void database_rollback(struct database *database);

/* Copies the log into the database. Returns 0 or -errno; 0 also if a reader prevents it. */
int database_checkpoint(struct database *database);

/* Makes the log's file longer than its contents, since a sync that also has to write the file's new
 * size takes several times as long. Call it after a commit, while there is space. Best effort. */
void database_lengthen_log(struct database *database);

/* Space in bytes. All 0 on error. */
struct database_room {
    uint64_t free;   /* within the database's file: pages that hold nothing */
    uint64_t growth; /* that the file needs before all of the log is in it */
    uint64_t log;    /* the log's file, which is used again once it is in the database */
    uint64_t disk;
};
struct database_room database_measure_room(struct database *database);

/* Keeps the database's file from growing, so that its log can always be copied into it, or lets it
 * grow again. */
void database_limit(struct database *database, bool limited);

/*
 * Returns a prepared statement for `sql`, a string constant, ready for binding. It belongs to the
 * database. database_step() resets it, unless there is a row. NULL on error: binding does nothing
 * then, and database_step() returns that error.
 */
sqlite3_stmt *database_query(struct database *database, const char *sql);

enum {
    _DATABASE_E_SUCCESS,
    DATABASE_E_ROW,         /* a row can be read; step again or reset */
    DATABASE_E_EXISTS,      /* a unique value is there already */
    DATABASE_E_INTERRUPTED, /* by a progress handler; nothing was written */
};

/* Runs a statement. Returns 0 when it is finished, DATABASE_E_*, or -errno as above. */
int database_step(struct database *database, sqlite3_stmt *statement);
