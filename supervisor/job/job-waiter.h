/* SPDX-License-Identifier: MIT */
#pragma once

/* Waiters: observers that are notified of the changes of a job. */

#include "shared/base/list.h"
#include "supervisor/job/job.h"
#include <stdint.h>

/* Notified of every change of a job. Belongs to its owner; unlinked before the last call. */
struct job_waiter {
    struct list link;       /* in the job; as free memory, in the table */
    struct list owner_link; /* for the owner */
    /* Called after each change of state. After the last one, job_ended() is true and the waiter is
     * unlinked. */
    void (*changed)(struct job_waiter *waiter, struct job *job);
    struct job *job;
    void *owner;
    uint64_t cookie;
    uint8_t wait; /* for the owner: what it waits for */
    bool patient; /* see job_waiter_be_patient() */
};

/* Makes a waiter without an owner. Returns NULL when out of memory. */
struct job_waiter *job_waiter_new(struct job_table *table, struct job *job);
/* Returns the waiter that was added first. */
static inline struct job_waiter *job_first_waiter(const struct job *job)
{
    return list_first_entry(&job->waiters, struct job_waiter, link);
}
/* Unlinks the waiter from job and owner. Returns NULL. */
struct job_waiter *job_waiter_free(struct job_table *table, struct job_waiter *waiter);
/* Moves the waiter to the end of the job's list. It is notified of the end only. If very many wait,
 * that is some turns later, when the job may have no group any more. */
void job_waiter_be_patient(struct job_waiter *waiter);
#define JOB_TOLD_AT_ONCE 2048u
/* Notifies all waiters of the change, but of an end at most JOB_TOLD_AT_ONCE patient ones in this
 * turn. When the job has ended, each is unlinked before its call. */
void job_tell_waiters(struct job_table *table, struct job *job);
/* Notifies patient waiters of all jobs that have ended. */
void job_tell_rest(struct job_table *table);
/* For job_table_init(). */
void job_table_init_telling(struct job_table *table);
