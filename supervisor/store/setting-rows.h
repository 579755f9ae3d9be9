/* SPDX-License-Identifier: MIT */
#pragma once

/* Settings that were made at run time, a row for each name: which groups stay stopped when the
 * supervisor starts (stop --keep), and bounds of limits, which take precedence over their files. */

#include "supervisor/store/database.h"
#include <stdint.h>

#define LIMIT_ROW_NONE (UINT64_MAX >> 1) /* no limit */

/* 0 = the value in the file. */
struct limit_row {
    uint64_t rate, period; /* so many units in each period, microseconds; both or none */
    uint64_t burst;
    uint64_t running;
};

extern const struct record LIMIT_ROW_RECORD;

/* A table of the database. */
struct setting_rows {
    const char *what;               /* the settings, in messages */
    const char *put, *remove, *get; /* statements: the name is the last parameter or column */
    bool bounds;                    /* a row has the values of a struct limit_row */
};

extern const struct setting_rows STOP_ROWS, LIMIT_ROWS;

/* All run in the storage thread, within a transaction. Each returns 0 or -errno. */

/* Writes the row of a name. `row`: NULL = removes it; ignored in a table without bounds. */
int setting_rows_put(struct database *database, const struct setting_rows *rows, const char *name,
                     const struct limit_row *row);

/* Calls `fn` for each row, until it returns another value than 0, which is returned. */
typedef int (*setting_row_fn)(void *userdata, const char *name, const struct limit_row *row);
int setting_rows_scan(struct database *database, const struct setting_rows *rows, setting_row_fn fn,
                      void *userdata);
