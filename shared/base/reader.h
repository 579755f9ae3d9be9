/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads pieces of text from a descriptor, such as lines or messages, in memory that is bounded. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
    int fd; /* borrowed */
    char separator;
    bool terminated; /* text after the last separator is not a piece */
    bool end;        /* read(2) has returned 0 */
    size_t max;      /* longer pieces are an error */
    char *buffer;
    size_t start, filled, allocated;
    size_t searched; /* no separator before this */
};

/* Release it with reader_deinit(). */
struct reader reader_make(int fd, char separator, bool terminated, size_t max);
void reader_deinit(struct reader *reader);

enum {
    _READER_E_SUCCESS,
    READER_E_END,
    READER_E_LATER, /* nothing complete came until the deadline */
};

/*
 * Returns the next piece without its separator, borrowed until the next call. Waits for input until
 * `deadline` (monotonic; 0 = not at all). Text after the last separator is a piece too, unless it
 * is empty or `terminated` is set. Returns 0, READER_E_*, -EINTR, -EMSGSIZE, -ENOMEM, or -errno of
 * read(2).
 */
int reader_next(struct reader *reader, usec_t deadline, const char **ret, size_t *ret_size);
