/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The live jobs of each user without permission to change things, in one group, and in each of its
 * cells. A user may not have more jobs than there are places left for all others, so no user fills
 * a queue.
 *
 * After a start, the jobs of earlier supervisors are also counted, except those of root. A job
 * that waits only on disk may remain counted after its end, so compare the count to the total.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/job/job.h"
#include <stdint.h>
#include <sys/types.h>

struct submitter_jobs {
    uint64_t n;
    uint64_t bytes; /* as of job_bytes(); only their payloads while they wait on disk */
};

struct submitter {
    struct index_entry by_uid;
    struct list link;
    struct submitter *parent;      /* of a cell's: the group's; NULL = this is the group's */
    struct submitter_jobs waiting; /* jobs queued, delayed, pending, or between attempts */
    struct submitter_jobs running;
    uint64_t n_cells; /* of the group's: those of which it is the maker */
};

static inline uid_t submitter_uid(const struct submitter *submitter)
{
    return (uid_t)submitter->by_uid.key;
}

/* The submitters of a group or a cell. */
struct submitters {
    struct index by_uid;
    struct list all; /* struct submitter.link */
    struct submitters *parent;
    struct submitter *maker; /* of the group: because of whom the cell exists; NULL = another */
};

/* `parent`: for a cell, those of its group; NULL = these are the group's. */
void submitters_init(struct submitters *submitters, struct submitters *parent);
/* No job in memory belongs to one of them. */
void submitters_deinit(struct submitters *submitters);

/* Returns the entry, which lives as long as the table; NULL = there is none. */
struct submitter *submitter_find(const struct submitters *submitters, uid_t uid);
/* Like submitter_find(), but makes the entry if there is none. Returns NULL without memory. */
struct submitter *submitter_get(struct submitters *submitters, uid_t uid);

/* The other functions take the submitters of the job's cell. */

/* The cell was made because of the user, if it has no maker yet. Without memory, it has none. After
 * a start of which nothing is kept, the first user of whom the cell has a job is the maker. */
void submitters_set_maker(struct submitters *submitters, uid_t uid);

/* Counts a new job. */
void submitter_charge(struct submitter *submitter, struct job *job);
/* Counts a job of an earlier supervisor in its present state. Without memory it is not counted. */
void submitter_adopt(struct submitters *submitters, struct job *job);
/* Counts a job of an earlier supervisor that waits on disk, with its payload of `bytes`. */
void submitter_adopt_on_disk(struct submitters *submitters, uid_t uid, uint64_t bytes);
/* Does not count jobs that wait any more: all of them are on disk. */
void submitters_forget_on_disk(struct submitters *submitters);
/* A job that is already counted comes into memory. */
void submitter_resume(const struct submitters *submitters, struct job *job);
/* It leaves memory, and waits on disk. */
void submitter_leave_on_disk(struct job *job);
/* Its job_bytes() have changed. */
void submitter_recharge(struct job *job);
/* If the job has a submitter: counts it in the state that it is about to get. */
void submitter_note(struct job *job, enum job_state state);
/* Does not count the job any more, if it has a submitter. */
void submitter_leave(struct job *job);
