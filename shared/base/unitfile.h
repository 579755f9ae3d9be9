/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Parses unit files as in systemd.syntax(7): [Section], Key=value, comments (# and ; at the
 * beginning of a line), continuation by a backslash. An empty assignment has the value "".
 */

#include <stddef.h>

#define UNITFILE_SIZE_MAX ((size_t)1 << 20) /* bytes */

enum {
    _UNITFILE_E_SUCCESS,
    UNITFILE_E_SKIP,        /* from handlers.section: skips its assignments */
    UNITFILE_E_TOO_LARGE,   /* more than UNITFILE_SIZE_MAX */
    UNITFILE_E_NOT_REGULAR, /* a directory, a FIFO, a device */
};

/* All text is valid UTF-8 and borrowed for the time of the call. */
struct unitfile_assignment {
    const char *section;
    const char *key;
    const char *value;
    unsigned line; /* where it begins */
};

/* Each returns 0, or -errno, which ends the parsing and is returned. */
struct unitfile_handlers {
    int (*section)(void *userdata, unsigned line, const char *section); /* also UNITFILE_E_SKIP */
    int (*assignment)(void *userdata, const struct unitfile_assignment *assignment);
    int (*problem)(void *userdata, unsigned line,
                   const char *text); /* the line breaks the syntax */
    void *userdata;
};

/*
 * Calls the handlers in the order of the lines; skips lines that break the syntax after reporting
 * them as problems. Returns 0, -ENOMEM, or the -errno of a handler.
 */
int unitfile_parse(const char *text, size_t size, const struct unitfile_handlers *handlers);

/* Reads a whole file. Returns 0, UNITFILE_E_*, or -errno; free(3) ends `*ret`. */
int unitfile_read(const char *path, char **ret, size_t *ret_size);
