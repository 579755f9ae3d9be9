/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The file in which an upgrade hands over rows: a number that tells the layout, then packs. A pack
 * is a kind and the fields and payloads of rows of that kind. The next supervisor has the same
 * layout, so the file has no versions.
 */

#include "supervisor/succession/saved-row.h"
#include <stddef.h>
#include <stdint.h>

struct file_writer {
    struct saver saver; /* adds rows to the file */
    int fd;
    const char *kind;         /* of the pack that is not written yet; NULL = none */
    struct saved_writer pack; /* its rows */
};

/* Makes an empty file, in place of any that is there. Returns 0 or -errno, nothing left open. */
int file_writer_open(struct file_writer *writer, const char *path, uint64_t layout);
/* Writes what was added. Returns 0, or the first -errno of adding or writing. */
int file_writer_flush(struct file_writer *writer);
/* Drops what is not written. */
void file_writer_close(struct file_writer *writer);

struct saved_file;

/* Opens a file, which may be unlinked then. Returns 0, -EPERM (it is not a file of this user),
 * -EUCLEAN (it has another layout, or is cut off), or another -errno. */
int saved_file_open(struct saved_file **ret, const char *path, uint64_t layout);
/* NULL allowed. Returns NULL. */
struct saved_file *saved_file_close(struct saved_file *file);

/* Reads a row, which is valid until the file is closed. Returns 0; or -errno, which refuses it. */
typedef int (*row_fn)(void *userdata, struct saved_reader *row);
/* Calls `fn` for the rows of a kind, in the order in which they were added. Returns how many were
 * refused, or are damaged. */
uint64_t saved_file_scan(const struct saved_file *file, const char *kind, row_fn fn,
                         void *userdata);
