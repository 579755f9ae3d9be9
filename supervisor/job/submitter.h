/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The waiting jobs of each user without permission to change things, in one group. A user may have
 * as many waiting as remain free for all others, so no user fills a queue.
 *
 * After a start, the jobs of earlier supervisors are also counted, except those of root. A job
 * that waits only on disk may remain counted after its end, so compare the count to the total.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdint.h>
#include <sys/types.h>

struct job;

struct submitter {
    struct index_entry by_uid;
    struct list link;
    uint64_t n_waiting; /* jobs queued, delayed, or between attempts */
    uint64_t bytes;     /* their payloads */
};

/* The submitters of a group. */
struct submitters {
    struct index by_uid;
    struct list all; /* struct submitter.link */
};

void submitters_init(struct submitters *submitters);
/* No live job belongs to one of them. */
void submitters_deinit(struct submitters *submitters);

/* Returns the entry, which lives as long as the table; NULL = there is none. */
struct submitter *submitter_find(const struct submitters *submitters, uid_t uid);
/* Like submitter_find(), but makes the entry if there is none. Returns NULL without memory. */
struct submitter *submitter_get(struct submitters *submitters, uid_t uid);

/* Counts a new job, which waits. */
void submitter_charge(struct submitter *submitter, struct job *job);
/* Counts a job of an earlier supervisor in its present state. Without memory it is not counted. */
void submitter_adopt(struct submitters *submitters, struct job *job);
/* Counts a job of an earlier supervisor that waits on disk, with its payload of `bytes`. */
void submitter_adopt_on_disk(struct submitters *submitters, uid_t uid, uint64_t bytes);
/* Continues with a job that is counted, and was not in memory. */
void submitter_resume(const struct submitters *submitters, struct job *job);
/* Counts a job that does not wait any more, or waits again. */
void submitter_note(const struct job *job, bool waits);
