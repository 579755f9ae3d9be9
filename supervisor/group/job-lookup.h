/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds a durable job that waits on disk only, by its id, and brings it into memory. */

#include "shared/protocol/job-id.h"

struct group_context;
struct job;
struct job_load;

/* Embedded in what waits for the job. */
struct job_lookup {
    struct job_load *load; /* NULL = it does not look */
    const struct group_context *context;
    /* Called once, in a later turn. `job` is borrowed, and stays in memory until the end of the
     * turn; NULL = there is no such job. */
    void (*found)(struct job_lookup *lookup, struct job *job);
};

/* Looks for a job that is not in memory. Returns false if there is no store, or no memory. */
bool job_lookup_begin(struct job_lookup *lookup, const struct group_context *context,
                      const struct protocol_id *id);

/* Does not call found() any more. Idempotent. */
void job_lookup_end(struct job_lookup *lookup);
