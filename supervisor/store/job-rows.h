/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The rows of durable jobs, in three tables. "job" has jobs that have not ended, with everything
 * that a new supervisor needs to continue with them. "ended" has kept results, and "dead" has dead
 * letters, which are written in the transaction that removes the row of "job", or later. All calls
 * run in the storage thread, within a transaction of the caller's. Updates and removals are
 * idempotent: after a failure it is unknown whether a transaction is on disk, so its tasks are
 * applied again, except additions.
 *
 * There is no index for the order in which jobs wait: it would cost as much as the rows. The
 * supervisor keeps the numbers of the jobs in their order, and learns them at its start from
 * job_rows_scan().
 */

#include "shared/base/clock.h"
#include "shared/protocol/job-options.h"
#include "shared/protocol/protocol.h"
#include "supervisor/job/job-facts.h"
#include "supervisor/store/database.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The tables. */
enum row_table {
    ROWS_JOB,
    ROWS_ENDED,
    ROWS_DEAD,
    _ROWS_N_TABLES,
};

enum job_row_state {
    JOB_ROW_WAITING,
    JOB_ROW_DELAYED, /* until `due`: the first attempt */
    JOB_ROW_BACKOFF, /* until `due`: the next attempt */
    JOB_ROW_RUNNING, /* `attempt` was begun */
    _JOB_ROW_N_STATES,
    JOB_ROW_HANDED = 16, /* a worker may have got `attempt`: read as one of the others */
};

enum batch_state {
    BATCH_NONE,
    BATCH_OPEN,
    BATCH_CLOSED,
};

/*
 * All pointers are borrowed. Texts are not terminated.
 *
 * Rows are written some time after an attempt has begun. If trouped and its keeper die before that,
 * no record of the attempt exists. So when a row is read, its attempt is raised by the number of
 * runs of trouped that have ended without a stop since the row was written. No run may begin more
 * than one attempt of which the row does not know: job_row_allows().
 */
struct job_row {
    JOB_FACTS_MEMBERS
    uint32_t n_unclean; /* when read: how many runs have ended without a stop since */
    int64_t number;
    const char *group, *key, *name, *reason; /* name: chosen id; reason: of the end */
    uint32_t group_size, key_size, name_size, reason_size;
    const char *tags;
    uint32_t tags_size;
    const char *traceparent;
    uint32_t traceparent_size;
    struct job_options asked;
    usec_t deadline;                  /* clock_steady(); 0 = none */
    usec_t time_left;                 /* until `deadline`, when it was set; 0 = not known */
    uint64_t unique_high, unique_low; /* struct unique_id; 0 = none */
    usec_t debounced;                 /* as of struct job_rare */
    const char *ties;                 /* job_ties.text */
    uint32_t ties_size;
    int64_t member_of;                              /* not stored: number of its batch; 0 = none */
    uint8_t batch;                                  /* enum batch_state: of a batch */
    uint64_t n_members_succeeded, n_members_failed; /* of a batch, when read */
    unsigned state;           /* enum job_row_state, or in "ended" enum job_state */
    uint64_t letter;          /* id of the dead letter */
    usec_t due;               /* clock_steady(), or a date: realtime; 0 = none */
    usec_t delay;             /* until `due`, when it was set; 0 = `due` is a date */
    uint32_t checkpoint_size; /* of the last checkpoint, which is in a table of its own; 0 = none */
    const void *checkpoint;   /* when read; NULL = it was not read */

    /* The payload, or in "ended" the result, is `payload_size` bytes at `payload`, or in the sealed
     * file `payload_fd`. When read: NULL = it was not read. */
    uint64_t payload_size;
    const void *payload;
    int payload_fd;
    bool payload_dropped; /* it is not on disk, for lack of room; when read, its size is 0 */
};

/* clang-format off */
#define JOB_ROW_NULL {.payload_fd = -1, .asked = JOB_OPTIONS_DEFAULT, .canceller = JOB_NOBODY}
/* clang-format on */

enum {
    _JOB_ROWS_E_SUCCESS,
    JOB_ROWS_E_EXISTS,  /* a job that has not ended, or a kept result, has that name */
    JOB_ROWS_E_MISSING, /* there is no such row */
};

/* Returns the last attempt that may begin before the row is written again. If an attempt of the job
 * may have ended a run of trouped, no further one begins before that. */
uint32_t job_row_allows(const struct job_row *row);

/* Whether another row has the name of this one, which is to be added. Returns 0, JOB_ROWS_E_EXISTS
 * or -errno. */
int job_rows_check_name(struct database *database, const struct job_row *row);

/* Adds a row whose name was checked. Returns 0, JOB_ROWS_E_EXISTS, or -errno: see database_step().
 */
int job_rows_add(struct database *database, const struct job_row *row);

/* Writes the facts, the state and the dates. No row is no error: a job that has not been written
 * yet. Returns 0 or -errno. */
int job_rows_update(struct database *database, const struct job_row *row);

/* Writes the checkpoint of a job whose row has its size; 0 = removes it. Returns 0 or -errno. */
int job_rows_put_checkpoint(struct database *database, int64_t number, const void *bytes,
                            size_t size);

/* Writes the group and the priority that was asked for. No row is no error. Returns 0 or -errno. */
int job_rows_move(struct database *database, const struct job_row *row);

/* Notes that the job is to be cancelled: the next supervisor does so if this one does not. No row
 * is no error. Returns 0 or -errno. */
int job_rows_cancel(struct database *database, int64_t number);

/* Adds a row to "ended" or "dead", or replaces it. Large bytes have been written as pieces, unless
 * the row is written without them. Returns 0 or -errno. */
int job_rows_put(struct database *database, enum row_table table, const struct job_row *row);

/* Removes the rows of this number from `tables`, bits of 1 << enum row_table, if they are there.
 * ROWS_ALL, for a job that is not accepted, also removes pieces of a payload without a row. Returns
 * 0 or -errno. */
int job_rows_remove(struct database *database, unsigned tables, int64_t number);
#define ROWS_ALL ((1u << _ROWS_N_TABLES) - 1)

/* As the only bit of `tables`: removes what job_rows_put_fate() has written. */
#define ROWS_FATE (1u << 30)

/* Keeps how a job has ended, for those that wait for it: `state` is enum job_state. Returns 0 or
 * -errno. */
int job_rows_put_fate(struct database *database, int64_t number, unsigned state);

/* Notes that the batch is closed. No row is no error. Returns 0 or -errno. */
int job_rows_close_batch(struct database *database, int64_t number);
/* Counts a member of the batch that has ended. No row is no error. Returns 0 or -errno. */
int job_rows_count_member(struct database *database, int64_t number, bool succeeded);

/* Removes the row of a job, if there is one, but not its payload, which another row takes over.
 * Returns 0 or -errno. */
int job_rows_take(struct database *database, int64_t number);

/* Called for each row that is read. The row is valid during the call. Returns 0 to continue, or
 * what the reading function is to return. */
typedef int (*job_row_fn)(void *userdata, const struct job_row *row);

/* Reads one row, with its checkpoint, and its payload unless that is in several pieces. Returns 0,
 * JOB_ROWS_E_MISSING, -errno, or what `fn` returned. */
int job_rows_fetch(struct database *database, int64_t number, job_row_fn fn, void *userdata);

/* Reads the number of the row with that chosen name. Returns 0, JOB_ROWS_E_MISSING or -errno. */
int job_rows_find(struct database *database, const char *name, size_t size, int64_t *ret_number);

/* Looks for a kept result with that number or chosen name. Returns likewise. */
int job_rows_find_result(struct database *database, int64_t number, const char *id);

/* Reads at most `max` rows with numbers above `after`, in their order, without payloads. `ended`:
 * also the rows of kept results, with a `state` of enum job_state above all of enum job_row_state.
 * Returns 0, -errno, or what `fn` returned. */
int job_rows_scan(struct database *database, int64_t after, bool ended, unsigned max, job_row_fn fn,
                  void *userdata);

/* Reads at most `max` rows of "ended" in the order of their ends, or of "dead" in that of their
 * letters. They follow the row with the end or letter `key` and this number; INT64_MIN, 0 = from
 * the first. Returns like job_rows_scan(). */
int job_rows_scan_ends(struct database *database, enum row_table table, int64_t key, int64_t number,
                       unsigned max, job_row_fn fn, void *userdata);

/* What ties jobs to each other. */
enum row_ties {
    ROWS_TIED,  /* `ties` of jobs that have not ended */
    ROWS_FATES, /* `state`: enum job_state */
    _ROWS_N_TIES,
};
/* Reads only the numbers above `after`, and the member that `which` names. Returns like
 * job_rows_scan(). */
int job_rows_scan_ties(struct database *database, enum row_ties which, int64_t after, unsigned max,
                       job_row_fn fn, void *userdata);

/* All of a row but the payload. */
extern const struct record JOB_ROW_RECORD;
/* Replaces values that are out of bounds: the file may be damaged. */
void job_row_sanitize(struct job_row *row);
