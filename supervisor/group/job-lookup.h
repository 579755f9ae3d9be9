/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds a durable job that waits on disk only, by its id, and brings it into memory. */

#include "shared/protocol/job-id.h"
#include <sys/types.h>

struct group_context;
struct job;
struct job_load;
struct loaded_job;

/* Embedded in what waits for the job. */
struct job_lookup {
    struct job_load *load; /* NULL = it does not look */
    const struct group_context *context;
    /*
     * Called once, in a later turn; not if the store is closed first. `job` is borrowed, and stays
     * in memory until the end of the turn. NULL, with `error` 0: there is no such job. With
     * CELL_E_STORE_FAILED or -ENOMEM that is not known; with CELL_E_ON_DISK it is on disk, and its
     * group is stopping.
     */
    void (*found)(struct job_lookup *lookup, struct job *job, int error);
};

/* Looks for a job that is not in memory, for a user; 0 = for trouped itself. Returns 0,
 * CELL_E_MISSING (no group is durable), CELL_E_STORE_FAILED or -ENOMEM; found() follows after 0
 * only. */
int job_lookup_begin(struct job_lookup *lookup, const struct group_context *context,
                     const struct protocol_id *id, uid_t asker);

/* Does not call found() any more. Idempotent. */
void job_lookup_end(struct job_lookup *lookup);

/* Returns a text that says why jobs on disk cannot be read, or are unknown. Valid until the loop's
 * next turn. */
const char *job_lookup_problem(const struct group_context *context);

/* Brings a job that is not in memory into it, in the turn in which its row was read. Returns 0,
 * CELL_E_MISSING, CELL_E_EXISTS if another has its id, CELL_E_ON_DISK or -ENOMEM. */
int job_lookup_take(const struct group_context *context, struct loaded_job *loaded,
                    struct job **ret);
