/* SPDX-License-Identifier: MIT */
#pragma once

/* A row holds what was set of a limit at run time, in the place of what its file says. */

#include "supervisor/store/database.h"
#include <stdint.h>

#define LIMIT_ROW_NONE (UINT64_MAX >> 1) /* no limit */

/* 0 = as in the file. */
struct limit_row {
    uint64_t rate, period; /* so many units in each period, microseconds; both or none */
    uint64_t burst;
    uint64_t running;
};

extern const struct record LIMIT_ROW_RECORD;

/* All run in the storage thread, within a transaction. Each returns 0 or -errno. */
int limit_rows_put(struct database *database, const char *name, const struct limit_row *row);
int limit_rows_remove(struct database *database, const char *name);

/* Calls `fn` for each row, until it returns another value than 0, which is returned. */
typedef int (*limit_row_fn)(void *userdata, const char *name, const struct limit_row *row);
int limit_rows_scan(struct database *database, limit_row_fn fn, void *userdata);
