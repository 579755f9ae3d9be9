/* SPDX-License-Identifier: MIT */
#include "supervisor/job/kept-results.h"

#include "shared/base/fault.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/loop/loop.h"
#include <stdlib.h>

#define kept_of(node) list_entry(node, struct kept_result, link)

/* A reload can lower the bounds of a million results. */
#define DROPS_PER_TURN 8192

static uint64_t *bytes_of(const struct kept_result *kept)
{
    return kept->aside ? &kept->results->aside_bytes : &kept->results->bytes;
}

/* The result leaves its list, and is not counted. */
static void leave(struct kept_result *kept)
{
    list_unlink(&kept->link);
    kept->results->n_jobs -= !kept->aside;
    *bytes_of(kept) -= kept->job->result.size;
}

void kept_results_drop(struct job *job)
{
    struct kept_result *kept = job->kept;
    struct job_table *table = kept->results->table;

    leave(kept);
    list_unlink(&kept->blob_link);
    free(kept);
    job->kept = NULL;
    job_let_go(table, job);
}

static void kept_results_arm(struct kept_results *results)
{
    struct list *oldest = list_first(&results->jobs);

    if (oldest && !timer_armed(&results->timer))
        timer_arm(loop_timers(results->loop), &results->timer,
                  usec_add(kept_of(oldest)->since, results->ttl));
}

static bool is_due(const struct kept_results *results, const struct kept_result *oldest, usec_t now)
{
    return results->n_jobs > results->max || results->bytes > results->memory_max ||
           usec_add(oldest->since, results->ttl) <= now;
}

static void kept_results_refuse(struct job *job)
{
    char reason[JOB_UNKEPT_MAX];

    job_set_reason(job, job_unkept_reason(job, 0, reason));
    payload_deinit(&job->result);
}

/* The result is beyond the bounds. While jobs need it, it is set aside; without its bytes if there
 * is no room for them. */
static void kept_results_end(struct kept_result *kept)
{
    struct kept_results *results = kept->results;
    struct job *job = kept->job;

    if (!job_has_children(job)) {
        kept_results_drop(job);
        return;
    }
    leave(kept);
    kept->aside = true;
    if (results->aside_bytes + job->result.size > results->memory_max) {
        list_unlink(&kept->blob_link);
        kept_results_refuse(job);
    }
    results->aside_bytes += job->result.size;
    list_push_back(&results->aside, &kept->link);
}

void kept_results_review(struct job *job)
{
    if (job->kept && (job->kept->aside || !job->keep_result))
        kept_results_drop(job);
}

static void kept_results_expire(struct kept_results *results, usec_t now)
{
    struct list *oldest;
    unsigned n = 0;

    while ((oldest = list_first(&results->jobs)) && is_due(results, kept_of(oldest), now)) {
        if (n++ == DROPS_PER_TURN) {
            timer_disarm(loop_timers(results->loop), &results->timer);
            timer_arm(loop_timers(results->loop), &results->timer, usec_add(now, 1));
            return;
        }
        kept_results_end(kept_of(oldest));
    }
    kept_results_arm(results);
}

static void kept_results_on_timer(struct timer *timer, usec_t now)
{
    kept_results_expire(list_entry(timer, struct kept_results, timer), now);
}

void kept_results_set_bounds(struct kept_results *results, usec_t ttl, uint64_t max,
                             uint64_t memory_max)
{
    results->memory_max = memory_max;
    results->ttl = ttl;
    results->max = max;
    timer_disarm(loop_timers(results->loop), &results->timer);
    kept_results_expire(results, loop_now(results->loop));
}

/* Each kept result above InlineMax= holds a descriptor. A group's oldest one makes room for a large
 * payload of the same group. */
static void spare_oldest(struct blob_share *share)
{
    struct kept_result *oldest =
        list_entry(list_first(&share->kept), struct kept_result, blob_link);

    if (!job_has_children(oldest->job)) {
        kept_results_drop(oldest->job);
        return;
    }
    *bytes_of(oldest) -= oldest->job->result.size;
    list_unlink(&oldest->blob_link);
    kept_results_refuse(oldest->job);
}

void kept_results_init(struct kept_results *results, struct loop *loop, struct job_table *table)
{
    *results = (struct kept_results){.loop = loop, .table = table};
    table->blobs.spare = spare_oldest;
    list_init(&results->jobs);
    list_init(&results->aside);
    timer_init(&results->timer, kept_results_on_timer);
}

void kept_results_deinit(struct kept_results *results)
{
    struct list *oldest;

    while ((oldest = list_first(&results->jobs)) || (oldest = list_first(&results->aside)))
        kept_results_drop(kept_of(oldest)->job);
    timer_disarm(loop_timers(results->loop), &results->timer);
}

void kept_results_restore(struct kept_results *results, struct job *job, usec_t since)
{
    const struct held_blob *blob;
    struct kept_result *kept = fault_inject("kept-result") < 0 ? NULL : malloc(sizeof(*kept));

    if (!kept) {
        job->forgotten = true;
        job_let_go(results->table, job);
        return;
    }
    if (job->unkept)
        payload_deinit(&job->result);
    if (job->result.size > results->memory_max)
        kept_results_refuse(job);
    *kept = (struct kept_result){.results = results, .job = job, .since = since};
    list_init(&kept->blob_link);
    list_push_back(&results->jobs, &kept->link);
    job->kept = kept;
    results->n_jobs++;
    results->bytes += job->result.size;
    blob = payload_held_blob(&job->result);
    if (blob)
        list_push_back(&blob->share->kept, &kept->blob_link);
    kept_results_expire(results, loop_now(results->loop));
}

void kept_results_add(struct kept_results *results, struct job *job)
{
    kept_results_restore(results, job, loop_now(results->loop));
}
