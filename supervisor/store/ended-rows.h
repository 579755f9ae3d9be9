/* SPDX-License-Identifier: MIT */
#pragma once

/* The rows of durable jobs that have ended, and whose result is kept. All calls run in the storage
 * thread, in the transaction that removes the row of the job (job-rows.h), or later; they are
 * idempotent. */

#include "shared/base/clock.h"
#include "supervisor/job/job-facts.h"
#include "supervisor/store/database.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All pointers are borrowed. Texts are not terminated. */
struct ended_row {
    JOB_FACTS_MEMBERS
    int64_t number;
    const char *group, *key, *name, *reason; /* name: chosen id */
    uint32_t group_size, key_size, name_size, reason_size;
    uint8_t state;      /* enum job_state */
    const void *result; /* NULL = in the sealed file `result_fd` */
    int result_fd;
    uint64_t result_size;
};

/* clang-format off */
#define ENDED_ROW_NULL {.result_fd = -1}
/* clang-format on */

enum {
    _ENDED_ROWS_E_SUCCESS,
    ENDED_ROWS_E_MISSING, /* there is no such row */
};

/* Adds a row, or replaces it. Returns 0 or -errno: see database_step(). */
int ended_rows_put(struct database *database, const struct ended_row *row);

/* Removes a row, if it is there. Returns 0 or -errno. */
int ended_rows_remove(struct database *database, int64_t number);

/* Called for each row that is read. The row is valid during the call. Returns 0 to go on, or what
 * the reading function is to return. */
typedef int (*ended_row_fn)(void *userdata, const struct ended_row *row);

/* Reads one row. Returns 0, ENDED_ROWS_E_MISSING, -errno, or what `fn` returned. */
int ended_rows_fetch(struct database *database, int64_t number, ended_row_fn fn, void *userdata);

/* Reads at most `max` rows, in the order of their ends, that follow the row with this end and
 * number (0, 0 = from the first). Returns 0, -errno, or what `fn` returned. */
int ended_rows_scan(struct database *database, usec_t ended_at, int64_t number, unsigned max,
                    ended_row_fn fn, void *userdata);
