/* SPDX-License-Identifier: MIT */
#include "supervisor/job/kept-results.h"

#include "shared/base/fault.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/loop/loop.h"
#include <stdio.h>
#include <stdlib.h>

#define kept_of(node) list_entry(node, struct kept_result, link)

/* A reload can lower the bounds of a million results. */
#define DROPS_PER_TURN 8192

/* The sums of which each submitter has a share. */
enum {
    SHARED_NUMBER,
    SHARED_LARGE, /* results that hold a descriptor */
    SHARED_BYTES,
};

/* Removes the result's bytes from the counts. */
static void uncount_bytes(struct kept_result *kept)
{
    const uint64_t size = kept->job->result.size;

    if (!kept->share) {
        kept->results->aside_bytes -= size;
        return;
    }
    kept->results->bytes -= size;
    share_sub(kept->share, SHARED_BYTES, size);
}

/* Removes the result from its submitter's large ones. */
static void leave_large(struct kept_result *kept)
{
    if (list_linked(&kept->large_link))
        share_sub(kept->share, SHARED_LARGE, 1);
    list_unlink(&kept->large_link);
}

/* Removes the result from its lists and from the counts. */
static void leave(struct kept_result *kept)
{
    uncount_bytes(kept);
    leave_large(kept);
    list_unlink(&kept->link);
    if (!kept->share)
        return;
    kept->results->n_jobs--;
    list_unlink(&kept->share_link);
    share_sub(kept->share, SHARED_NUMBER, 1);
    kept->share = share_unref(kept->share);
}

static void enter(struct kept_results *results, struct kept_result *kept)
{
    const uint64_t size = kept->job->result.size;

    list_push_back(&results->jobs, &kept->link);
    results->n_jobs++;
    results->bytes += size;
    list_push_back(&kept->share->entries[SHARED_NUMBER], &kept->share_link);
    share_add(kept->share, SHARED_NUMBER, 1);
    share_add(kept->share, SHARED_BYTES, size);
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

/* Returns the oldest result of a user with at least an equal share. */
static struct kept_result *oldest_of_most(struct kept_results *results, unsigned kind)
{
    const struct share *share = share_victim(&results->shares, kind);

    return list_first_entry(&share->entries[SHARED_NUMBER], struct kept_result, share_link);
}

/* Returns a result that is to go; NULL = none. */
static struct kept_result *find_due(struct kept_results *results, usec_t now)
{
    struct list *oldest = list_first(&results->jobs);

    if (results->n_jobs > results->max)
        return oldest_of_most(results, SHARED_NUMBER);
    if (results->bytes > results->memory_max)
        return oldest_of_most(results, SHARED_BYTES);
    return oldest && usec_add(kept_of(oldest)->since, results->ttl) <= now ? kept_of(oldest) : NULL;
}

static void kept_results_refuse(struct job *job)
{
    char reason[JOB_UNKEPT_MAX];

    job_set_reason(job, job_unkept_reason(job, 0, reason));
    payload_deinit(&job->result);
}

/* The result is beyond the bounds: drops it. While jobs need it, sets it aside instead, without its
 * bytes if there is no room for them. */
static void kept_results_end(struct kept_result *kept)
{
    struct kept_results *results = kept->results;
    struct job *job = kept->job;

    if (!job_has_children(job)) {
        kept_results_drop(job);
        return;
    }
    leave(kept);
    if (results->aside_bytes + job->result.size > results->memory_max) {
        list_unlink(&kept->blob_link);
        kept_results_refuse(job);
    }
    results->aside_bytes += job->result.size;
    list_push_back(&results->aside, &kept->link);
}

void kept_results_review(struct job *job)
{
    if (job->kept && (!job->kept->share || !job->keep_result))
        kept_results_drop(job);
}

static void kept_results_expire(struct kept_results *results, usec_t now)
{
    struct kept_result *due;
    unsigned n = 0;

    while ((due = find_due(results, now))) {
        if (n++ == DROPS_PER_TURN) {
            timer_disarm(loop_timers(results->loop), &results->timer);
            timer_arm(loop_timers(results->loop), &results->timer, usec_add(now, 1));
            return;
        }
        kept_results_end(due);
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

/* Returns the oldest large result of a user with at least an equal share of a group's; of those
 * that are set aside if there are no others. */
static struct kept_result *find_spare(const struct blob_share *share)
{
    struct kept_result *oldest = list_first_entry(&share->kept, struct kept_result, blob_link);
    const struct share *most = share_victim(&oldest->results->shares, SHARED_LARGE);

    return most ? list_first_entry(&most->entries[SHARED_LARGE], struct kept_result, large_link)
                : oldest;
}

/* Each kept result above InlineMax= holds a descriptor. One of a group's makes room for a large
 * payload of the same group. */
static void spare_one(struct blob_share *share)
{
    struct kept_result *kept = find_spare(share);

    if (!job_has_children(kept->job)) {
        kept_results_drop(kept->job);
        return;
    }
    uncount_bytes(kept);
    leave_large(kept);
    list_unlink(&kept->blob_link);
    kept_results_refuse(kept->job);
}

void kept_results_init(struct kept_results *results, struct loop *loop, struct job_table *table)
{
    *results = (struct kept_results){.loop = loop, .table = table};
    table->blobs.spare = spare_one;
    list_init(&results->jobs);
    list_init(&results->aside);
    shares_init(&results->shares);
    timer_init(&results->timer, kept_results_on_timer);
}

static struct list *any_of(const struct kept_results *results)
{
    return list_first(list_empty(&results->jobs) ? &results->aside : &results->jobs);
}

bool kept_results_clear(struct kept_results *results)
{
    struct list *node = any_of(results);

    for (unsigned n = 0; node && n < DROPS_PER_TURN; n++) {
        kept_results_drop(kept_of(node)->job);
        node = any_of(results);
    }
    return !node;
}

void kept_results_deinit(struct kept_results *results)
{
    bool is_clear = false;

    while (!is_clear)
        is_clear = kept_results_clear(results);
    shares_deinit(&results->shares);
    timer_disarm(loop_timers(results->loop), &results->timer);
}

static struct share *share_of(struct kept_results *results, const struct job *job)
{
    char uid[12];
    const int size = snprintf(uid, sizeof(uid), "%u", (unsigned)job->submitter_uid);

    return share_get(&results->shares, uid, (size_t)size);
}

void kept_results_restore(struct kept_results *results, struct job *job, usec_t since)
{
    const struct held_blob *blob;
    struct kept_result *kept = fault_inject("kept-result") < 0 ? NULL : malloc(sizeof(*kept));
    struct share *share = kept ? share_of(results, job) : NULL;

    if (!share) {
        free(kept);
        job->forgotten = true;
        job_let_go(results->table, job);
        return;
    }
    if (job->unkept)
        payload_deinit(&job->result);
    if (job->result.size > results->memory_max)
        kept_results_refuse(job);
    *kept = (struct kept_result){.results = results, .job = job, .since = since, .share = share};
    list_init(&kept->blob_link);
    list_init(&kept->large_link);
    enter(results, kept);
    job->kept = kept;
    blob = payload_held_blob(&job->result);
    if (blob) {
        list_push_back(&blob->share->kept, &kept->blob_link);
        list_push_back(&share->entries[SHARED_LARGE], &kept->large_link);
        share_add(share, SHARED_LARGE, 1);
    }
    kept_results_expire(results, loop_now(results->loop));
}

void kept_results_add(struct kept_results *results, struct job *job)
{
    kept_results_restore(results, job, loop_now(results->loop));
}
