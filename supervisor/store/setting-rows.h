/* SPDX-License-Identifier: MIT */
#pragma once

/* Settings that were made at run time, a row for each name: which groups stay stopped when the
 * supervisor starts (stop --keep), and bounds of limits, which take precedence over their files.
 * What schedules have decided is kept likewise (schedule-rows.h). */

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

/* A table of the database with a row for each name. */
struct setting_rows {
    const char *what;               /* the settings, in messages */
    const char *put, *remove, *get; /* statements: the name is the last parameter or column */
    const struct record *record;    /* columns of a row; NULL = it has only its name */
    size_t size;                    /* of the row's struct */
    size_t bytes; /* one more column has all of the struct from here on; 0 = there is none */
};

extern const struct setting_rows STOP_ROWS, LIMIT_ROWS;

/* All run in the storage thread, within a transaction. Each returns 0 or -errno. */

/* Writes the row of a name; `row` NULL = removes it. */
int setting_rows_put(struct database *database, const struct setting_rows *rows, const char *name,
                     const void *row);

/* Calls `fn` for each sound row, until it returns another value than 0, which is returned. */
typedef int (*setting_row_fn)(void *userdata, const char *name, const void *row);
int setting_rows_scan(struct database *database, const struct setting_rows *rows, setting_row_fn fn,
                      void *userdata);
