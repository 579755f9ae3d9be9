/* SPDX-License-Identifier: MIT */
#pragma once

/* The rows of durable jobs that are dead letters. All calls run in the storage thread, in the
 * transaction that removes the row of the job (job-rows.h), or later; they are idempotent. */

#include "shared/base/clock.h"
#include "shared/protocol/job-options.h"
#include "supervisor/event/attempt-cause.h"
#include "supervisor/store/database.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All pointers are borrowed. Texts are not terminated. */
struct dead_row {
    int64_t number;                          /* of the job */
    uint64_t letter;                         /* id of the dead letter */
    const char *group, *key, *name, *reason; /* name: chosen id */
    uint32_t group_size, key_size, name_size, reason_size;
    int32_t code;
    uint32_t attempts;
    enum attempt_cause cause; /* of the last attempt */
    uid_t submitter_uid;
    usec_t created_at, dead_at; /* realtime */
    struct job_options asked;
    const void *payload; /* NULL = in the sealed file `payload_fd` */
    int payload_fd;
    uint64_t payload_size;
    bool payload_dropped; /* the disk had no room for the payload; when read, its size is 0 */
};

/* clang-format off */
#define DEAD_ROW_NULL {.payload_fd = -1, .asked = JOB_OPTIONS_DEFAULT}
/* clang-format on */

/* Adds a row, or replaces it. Returns 0 or -errno: see database_step(). */
int dead_rows_put(struct database *database, const struct dead_row *row);

/* Removes a row, if it is there. Returns 0 or -errno. */
int dead_rows_remove(struct database *database, int64_t number);

/* Called for each row that is read. The row is valid during the call. Returns 0 to go on, or what
 * the reading function is to return. */
typedef int (*dead_row_fn)(void *userdata, const struct dead_row *row);

/* Reads all rows in the order of their letters. There are as many as dead letters are kept. Returns
 * 0, -errno, or what `fn` returned. */
int dead_rows_scan(struct database *database, dead_row_fn fn, void *userdata);
