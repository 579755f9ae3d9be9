/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Brings durable jobs back from disk, with dead letters and kept results: for the groups whose jobs
 * have not been read yet, in chunks, while the loop serves.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/store/store.h"
#include <stdbool.h>
#include <stdint.h>

struct group_context;
struct job_load;
struct saved_reader;

enum restore_stage {
    RESTORE_NOTHING,
    RESTORE_TIES,
    RESTORE_LETTERS,
    RESTORE_RESULTS,
    RESTORE_LIVE,
    RESTORE_DONE,
};

/* The storage thread reads rows while the load is in the store; the loop takes them afterwards,
 * some in each turn, and says what is read next. */
struct restore {
    const struct group_context *context;
    enum restore_stage stage;
    int64_t end;       /* numbers from here on belong to jobs of this run */
    int64_t after;     /* the number of the last row that was taken in this stage */
    int64_t after_key; /* the id of that letter, or the end of that job; of ties: enum row_ties */
    struct job_load *load;                 /* NULL = nothing is read */
    size_t taken;                          /* entries of the load */
    size_t n_again;                        /* of these, those that are to be read again, … */
    bool is_short;                         /* … some of them because memory is short */
    struct loop_deferred more;             /* takes the next entries */
    struct timer retry;                    /* continues after memory was short */
    bool ties_read;                        /* those of earlier runs */
    bool scanned;                          /* each row has been seen, so the group of each exists */
    bool leaves;                           /* rows of closed groups, which are to be read later */
    void (*done)(struct restore *restore); /* read, or failed; NULL = none */
};

void restore_init(struct restore *restore, const struct group_context *context);

/* Begins to restore the groups that have not been restored, unless that is already in progress. The
 * store is open. Rows of groups that no file describes get a group (undescribed.h). */
void restore_begin(struct restore *restore);
/* Like restore_begin(), after the removal of a group that may have left jobs on disk. */
void restore_again(struct restore *restore);

/* Call it once the store is closed. Valid when zeroed. */
void restore_deinit(struct restore *restore);

/* Brings back a job that the last supervisor has saved for an upgrade (upgrade/save.h). Workers
 * have been adopted with their jobs in hand, and there is no other job yet. Returns 0 or -errno. */
int job_restore_row(const struct group_context *context, struct saved_reader *row);
/* Like job_restore_row(), but for an item that a job has emitted, after all jobs. */
int job_item_restore_row(const struct group_context *context, struct saved_reader *row);
