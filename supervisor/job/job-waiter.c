/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-waiter.h"

#include <stdlib.h>

/* How many are kept for the next jobs. */
#define UNUSED_MAX 4096u

struct job_waiter *job_waiter_new(struct job_table *table, struct job *job)
{
    struct list *unused = list_first(&table->unused_waiters);
    struct job_waiter *waiter =
        unused ? list_entry(unused, struct job_waiter, link) : malloc(sizeof(*waiter));

    if (!waiter)
        return NULL;
    if (unused) {
        list_unlink(unused);
        table->n_unused_waiters--;
    }
    list_init(&waiter->owner_link);
    waiter->job = job;
    waiter->wait = waiter->refusal = 0;
    list_push_back(&job->waiters, &waiter->link);
    return waiter;
}

struct job_waiter *job_waiter_free(struct job_table *table, struct job_waiter *waiter)
{
    list_unlink(&waiter->link);
    list_unlink(&waiter->owner_link);
    if (table->n_unused_waiters == UNUSED_MAX) {
        free(waiter);
        return NULL;
    }
    list_push_front(&table->unused_waiters, &waiter->link);
    table->n_unused_waiters++;
    return NULL;
}

static void job_tell(struct list *node, struct job *job)
{
    struct job_waiter *waiter = list_entry(node, struct job_waiter, link);

    waiter->changed(waiter, job);
}

void job_tell_waiters(struct job *job)
{
    struct list *node;

    if (!job_ended(job)) {
        list_for_each_safe (live, &job->waiters)
            job_tell(live, job);
        return;
    }
    while ((node = list_first(&job->waiters))) {
        list_unlink(node);
        job_tell(node, job);
    }
}
