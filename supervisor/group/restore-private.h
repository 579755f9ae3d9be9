/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between restore.c (the sequence, live jobs) and restore-ended.c. */

#include "supervisor/group/restore.h"
#include "supervisor/store/job-load.h"

struct saved_job;

enum {
    _RESTORE_E_SUCCESS,
    RESTORE_E_AGAIN, /* to be read again: the store is about to refuse the job that has its id */
    RESTORE_E_MORE,  /* the rest follows in later turns */
};

/* Returns the group of a row, if it is being restored. If there is no group of that name, makes one
 * that no file describes. */
struct group *restore_group_of_row(const struct restore *restore, const struct job_row *row);

/* Whether a row is that of a job of an earlier run. `group`: its group; NULL = it has none. */
bool restore_is_old(const struct restore *restore, const struct group *group, int64_t number);

/* Whether this row's id, which its sender chose, is that of a job that the store is about to
 * refuse. */
bool restore_is_free_soon(const struct restore *restore, const struct job_row *row);

/* ---- restore-ended.c ---- */

/* Takes a row of the stage RESTORE_TIES. Returns 0 or -ENOMEM: it is to be read again. */
int restore_take_ties(struct restore *restore, struct loaded_job *row);
/* All jobs have been read. */
void restore_settle_ties(const struct restore *restore);

/* The next two take over the payload of a row. Returns 0. */
int restore_take_letter(struct restore *restore, struct loaded_job *row);
/* Returns 0, RESTORE_E_AGAIN or -ENOMEM: the row is to be read again. */
int restore_take_result(struct restore *restore, struct loaded_job *row);

/* Keeps the result of a job that was made only for this, and ends the job. Returns 0 or -ENOMEM. */
int restore_saved_result(struct group *group, struct job *job, const struct saved_job *saved,
                         struct payload *result);
