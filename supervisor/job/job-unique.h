/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Unique keys. The first live job with a key holds it. Another one with the same key, which its
 * submitter has chosen to let run afterwards, waits for it. The index over live jobs is the only
 * state: whatever ends the holder releases the key in the same instant.
 */

#include "supervisor/job/job.h"
#include <nettle/sha2.h>

/* Makes the id of a group's key: half of a SHA-256 digest, since it is stored and submitters cannot
 * choose two keys with the same id. 1 MiB takes about 1 ms. */
struct unique_id unique_id_make(const char *group, const void *key, size_t size);

/* Makes the id of a key whose bytes come in parts. */
struct unique_digest {
    struct sha256_ctx hash;
};

void unique_digest_begin(struct unique_digest *digest, const char *group);
static inline void unique_digest_add(struct unique_digest *digest, const void *bytes, size_t size)
{
    sha256_update(&digest->hash, size, bytes);
}
/* Returns the id; the digest can be begun again. */
struct unique_id unique_digest_end(struct unique_digest *digest);

static inline bool unique_id_is_none(const struct unique_id *id)
{
    return id->high == 0 && id->low == 0;
}

/* Whether the job has a unique key that it has not released. */
static inline bool job_is_unique(const struct job *job)
{
    return job->rare && job->rare->listed;
}
/* Whether the job may not begin, because of another one with its key. */
static inline bool unique_waits(const struct job *job)
{
    return job_is_unique(job) && (!job->rare->holds || job->rare->replaced_by);
}

/* Whether a job with a key is about to end, and does not begin before that. */
static inline bool unique_is_going(const struct job *job)
{
    return job->rare->replaced_by || job_cancel_requested(job);
}

/* Gives a job that is not listed the id. Returns 0 or -ENOMEM. */
int unique_set(struct job *job, const struct unique_id *id);
/* Lists a job that has an id: it holds the key from now on if no other job does. */
void unique_join(struct job_table *table, struct job *job);
/* The job waits: an earlier job, which is still to be listed, will hold its key. */
void unique_yield(struct job_table *table, struct job *job);
/* Called when a job may be going that was not before: see unique_is_going(). */
void unique_review(struct job_table *table, struct job *job);
/* Takes the job out of the list. Returns the job that has waited for the key and holds it now; NULL
 * = none. Idempotent. */
struct job *unique_leave(struct job_table *table, struct job *job);

/* Returns the job that holds the key, or one that waits for it; NULL = none. */
struct job *unique_holder(const struct job_table *table, const struct unique_id *id);
struct job *unique_successor(const struct job_table *table, const struct unique_id *id);

/* Whether another job waits until this one has ended. */
static inline bool unique_is_awaited(const struct job_table *table, const struct job *job)
{
    return job_is_unique(job) && job->rare->holds && unique_successor(table, &job->rare->unique);
}

/* The new job is about to replace `old`, which waits. unique_end_replacing() follows. */
void unique_replace(struct job_table *table, struct job *job, struct job *old);
/* The old job may begin again, unless it has ended. Returns it, with the reference that was taken;
 * NULL = none was replaced. */
struct job *unique_end_replacing(struct job_table *table, struct job *job);
