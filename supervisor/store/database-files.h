/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Large payloads and results, each in a file of its own beside the database, in the directory
 * "troupe.db-blobs". The row has the size, an integer, in place of the bytes. A file is written and
 * synced before the commit of the row that names it, and removed after the commit that removes that
 * row. What a crash leaves in between is removed when the database is opened.
 *
 * Such bytes as rows are written twice, in the log and in the database, a page at a time: from
 * about 512 KiB on, a file takes less time, and it does not make the database grow.
 */

#include <dirent.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct database;

/* Bytes from which on they are a file. */
#define SIDE_FILE_MIN (UINT64_C(512) << 10)

/* The table of the row, whose number is that of the file. */
enum row_table {
    ROWS_JOB,
    ROWS_ENDED,
    ROWS_DEAD,
    _ROWS_N_TABLES,
};

struct side_file {
    enum row_table table;
    int64_t number;
    uint64_t at; /* private: bytes that are written and synced */
};

struct side_file_list {
    struct side_file *files;
    size_t n, n_allocated;
};

/* Part of a struct database; zeroed = none. */
struct side_files {
    size_t n; /* files, at most: 0 spares looking for one when a row is removed */
    uint64_t bytes;
    struct side_file_list begun;   /* written in part, without a row so far */
    struct side_file_list written; /* in this transaction */
    struct side_file_list dropped; /* in this transaction */
    struct side_file_list gone;    /* committed: to be removed */
    bool held;                     /* nothing is removed: a backup may need it */
    void *read;                    /* what was read last */
};

/* Whether bytes of this size are a file. */
bool side_files_take(uint64_t size);

enum {
    _SIDE_FILES_E_SUCCESS,
    SIDE_FILES_E_MORE, /* call again, in this transaction or a later one */
};

/*
 * Writes and syncs the next piece of a file before its row is written, so that other transactions
 * need not wait for the whole of a large file. The bytes are at `data`, or if that is NULL, in the
 * file `fd`. `spare`: how many bytes must stay free on the disk.
 *
 * Returns 0 when the file is complete, SIDE_FILES_E_MORE, or -errno. After -errno either
 * database->error is set, or the file is removed and the transaction can continue: -ENOSPC, -EFBIG
 * or -ENOMEM, also if `fd` could not be read.
 */
int side_files_begin(struct database *database, struct side_file file, const void *data, int fd,
                     uint64_t size, uint64_t spare);

/* Writes the rest of the file, and gives the file to its row. Returns like side_files_begin(), but
 * never SIDE_FILES_E_MORE. */
int side_files_write(struct database *database, struct side_file file, const void *data, int fd,
                     uint64_t size);

/* Reads it. `*ret` is borrowed until the next reading, or the end of the transaction. Returns 0,
 * -ENOMEM, or -errno, an error of the transaction: -EUCLEAN if it is missing or has another size.
 */
int side_files_read(struct database *database, struct side_file file, uint64_t size,
                    const void **ret);

/* Frees what was read. */
void side_files_forget(struct database *database);

/* Called when the row is removed: the file, if there is one, is removed after the commit. */
void side_files_drop(struct database *database, struct side_file file);

/* After a commit, and after a transaction that has failed. */
void side_files_committed(struct database *database);
void side_files_rolled_back(struct database *database);

/* Keeps files whose rows are removed from now on, or removes them. */
void side_files_hold(struct database *database, bool held);

/* Removes all files that no row names, and counts the others. Returns 0 or -errno. */
int side_files_open(struct database *database);
void side_files_close(struct database *database);

/* For a database that is missing: whether its files are there. Removes their directory if it is
 * empty. */
bool side_files_are_left(const struct database *database);

/* Each file in turn. `*directory` is NULL at first, and closed and NULL at the end. Returns false
 * at the end. */
bool side_files_next(const struct database *database, DIR **directory, struct side_file *ret);

/* The name of the table, and that of the column that has the size or the bytes; static. */
const char *row_table_name(enum row_table table);
const char *row_table_bytes(enum row_table table);
