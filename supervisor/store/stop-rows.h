/* SPDX-License-Identifier: MIT */
#pragma once

/* A row names a group that stays stopped when the supervisor starts: stop --keep. */

#include "supervisor/store/database.h"
#include <stdbool.h>

/* All run in the storage thread, within a transaction. Each returns 0 or -errno. */
int stop_rows_set(struct database *database, const char *name, bool stopped);

/* Calls `fn` for each row, until it returns another value than 0, which is returned. */
typedef int (*stop_row_fn)(void *userdata, const char *name);
int stop_rows_scan(struct database *database, stop_row_fn fn, void *userdata);
