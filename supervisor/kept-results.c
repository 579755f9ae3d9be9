/* SPDX-License-Identifier: MIT */
#include "kept-results.h"

#include "job.h"
#include "loop.h"

#define job_of(node) list_entry(node, struct job, link)

void kept_results_drop(struct job *job)
{
    struct kept_results *results = job->kept;

    list_unlink(&job->link);
    list_unlink(&job->blob_link);
    job->kept = NULL;
    job->group = NULL;
    results->n_jobs--;
    job_unref(results->table, job);
}

static void kept_results_arm(struct kept_results *results)
{
    struct list *oldest = list_first(&results->jobs);

    if (oldest && !timer_armed(&results->timer))
        (void)timer_arm(loop_timers(results->loop), &results->timer,
                        usec_add(job_of(oldest)->kept_at, results->ttl));
}

static void kept_results_expire(struct kept_results *results, usec_t now)
{
    struct list *oldest;

    while (
        (oldest = list_first(&results->jobs)) &&
        (results->n_jobs > results->max || usec_add(job_of(oldest)->kept_at, results->ttl) <= now))
        kept_results_drop(job_of(oldest));
    kept_results_arm(results);
}

static void kept_results_on_timer(struct timer *timer, usec_t now)
{
    kept_results_expire(list_entry(timer, struct kept_results, timer), now);
}

void kept_results_set_bounds(struct kept_results *results, usec_t ttl, uint64_t max)
{
    results->ttl = ttl;
    results->max = max;
    timer_disarm(loop_timers(results->loop), &results->timer);
    kept_results_expire(results, loop_now(results->loop));
}

void kept_results_init(struct kept_results *results, struct loop *loop, struct job_table *table)
{
    *results = (struct kept_results){.loop = loop, .table = table};
    list_init(&results->jobs);
    timer_init(&results->timer, kept_results_on_timer);
}

void kept_results_deinit(struct kept_results *results)
{
    struct list *oldest;

    while ((oldest = list_first(&results->jobs)))
        kept_results_drop(job_of(oldest));
    timer_disarm(loop_timers(results->loop), &results->timer);
}

void kept_results_add(struct kept_results *results, struct job *job)
{
    job->kept_at = loop_now(results->loop);
    job->kept = results;
    list_push_back(&results->jobs, &job->link);
    results->n_jobs++;
    if (job->result.fd >= 0) {
        list_push_back(&results->table->kept_blobs, &job->blob_link);
        (void)kept_results_make_room(results->table);
    }
    kept_results_expire(results, job->kept_at);
}

bool kept_results_make_room(struct job_table *table)
{
    struct list *oldest;

    while (table->n_blobs >= table->blobs_max && (oldest = list_first(&table->kept_blobs)))
        kept_results_drop(list_entry(oldest, struct job, blob_link));
    return table->n_blobs < table->blobs_max;
}
