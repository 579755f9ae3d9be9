/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-waiter.h"

#include <limits.h>
#include <stdlib.h>

/* How many are kept for the next jobs. */
#define UNUSED_MAX 4096u

/* Bytes of copies of a result that are made for waiters in one turn. */
#define TOLD_BYTES (UINT64_C(4) << 20)

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
    waiter->wait = 0;
    waiter->patient = false;
    list_push_front(&job->waiters, &waiter->link);
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

void job_waiter_be_patient(struct job_waiter *waiter)
{
    waiter->patient = true;
    list_unlink(&waiter->link);
    list_push_back(&waiter->job->waiters, &waiter->link);
}

/* An ended job, whose reference this holds, and whose other waiters are patient. */
struct telling {
    struct list link;
    struct job *job;
};

/* Patient waiters that are told in one turn: each may get a copy of the result. */
static unsigned told_at_once(const struct job *job)
{
    const uint64_t size = job->result.fd < 0 ? job->result.size : 0;

    return size * JOB_TOLD_AT_ONCE > TOLD_BYTES ? (unsigned)(TOLD_BYTES / size) + 1
                                                : JOB_TOLD_AT_ONCE;
}

/* Returns whether all waiters have been told. */
static bool tell_end(struct job *job, unsigned max)
{
    unsigned n = 0;

    list_until_empty (waiter, &job->waiters, struct job_waiter, link) {
        if (n++ >= max && waiter->patient)
            return false;
        list_unlink(&waiter->link);
        waiter->changed(waiter, job);
    }
    return true;
}

/* Returns false when out of memory. */
static bool tell_later(struct job_table *table, struct job *job)
{
    struct telling *telling = malloc(sizeof(*telling));

    if (!telling)
        return false;
    telling->job = job_ref(job);
    list_init(&telling->link);
    list_push_back(&table->telling, &telling->link);
    loop_defer(table->loop, &table->tell);
    return true;
}

void job_tell_waiters(struct job_table *table, struct job *job)
{
    if (!job_ended(job)) {
        list_for_each_entry_safe (waiter, &job->waiters, struct job_waiter, link) {
            if (waiter->patient)
                break;
            waiter->changed(waiter, job);
        }
        return;
    }
    if (!tell_end(job, table->loop ? told_at_once(job) : UINT_MAX) && !tell_later(table, job))
        (void)tell_end(job, UINT_MAX);
}

static void tell_some(struct job_table *table, bool all)
{
    struct telling *telling = list_first_entry(&table->telling, struct telling, link);

    if (!tell_end(telling->job, all ? UINT_MAX : told_at_once(telling->job)))
        return;
    list_unlink(&telling->link);
    job_unref(table, telling->job);
    free(telling);
}

static void on_turn(struct loop_deferred *deferred)
{
    struct job_table *table = list_entry(deferred, struct job_table, tell);

    tell_some(table, false);
    if (!list_empty(&table->telling))
        loop_defer(table->loop, &table->tell);
}

void job_tell_rest(struct job_table *table)
{
    while (!list_empty(&table->telling))
        tell_some(table, true);
    loop_undefer(&table->tell);
}

void job_table_init_telling(struct job_table *table)
{
    list_init(&table->telling);
    loop_deferred_init(&table->tell, on_turn);
}
