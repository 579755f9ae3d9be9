/* SPDX-License-Identifier: MIT */
#pragma once

/* Lines (or NUL-separated pieces) of a descriptor, one at a time, in memory bounded by the longest.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer line is an error: input without separators must not fill the memory. */
#define READER_LINE_MAX ((size_t)64 << 20)

struct reader {
    int fd;
    char separator;
    bool end; /* read(2) has said so */
    char *buffer;
    size_t start, filled, allocated;
    size_t searched; /* no separator before this */
    uint64_t size;   /* bytes in all, if it is a regular file; 0 = not known */
};

void reader_init(struct reader *reader, int fd, char separator);
void reader_deinit(struct reader *reader);

enum {
    _READER_E_SUCCESS,
    READER_E_END,
    READER_E_LATER, /* nothing came within the time-out */
};

/*
 * The next piece without its separator, waiting at most so long for more input; what follows the
 * last one counts unless it is empty. Borrowed until the next call. 0 or READER_E_*; -EINTR;
 * -EMSGSIZE; -ENOMEM; -errno of read(2).
 */
int reader_next(struct reader *reader, int timeout_ms, const char **ret, size_t *ret_size);
