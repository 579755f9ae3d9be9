/* SPDX-License-Identifier: MIT */
#include "tests/world/model.h"

#include "tests/world/sched.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define JOBS_MAX     65536
#define ATTEMPTS_MAX 64
/* MaxRetries= of the groups, and one. */
#define ATTEMPTS 3

struct history {
    struct model_job job;
    unsigned n_ends, n_refusals, n_unknown;
    int end, error;
    unsigned attempts;
    bool right_result;
    bool may_be_cancelled;
    uint64_t runs; /* a bit per attempt */
    unsigned n_runs;
};

static struct history jobs[JOBS_MAX];
static uint32_t n_jobs, n_open;
static unsigned n_faults;
static bool stops;

static void __attribute__((format(printf, 2, 3))) fault(uint32_t index, const char *format, ...)
{
    va_list list;
    char text[256];

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    n_faults++;
    dprintf(SIM_TRACE_FD, "FAULT: job %u: %s\n", index, text);
}

uint32_t model_add(const struct model_job *job)
{
    jobs[n_jobs].job = *job;
    n_open++;
    return n_jobs++;
}

const struct model_job *model_job(uint32_t index)
{
    return &jobs[index].job;
}

void model_allow_stops(void)
{
    stops = true;
}

uint32_t model_n_open(void)
{
    return n_open;
}

void model_run(uint32_t index, unsigned attempt)
{
    struct history *job = &jobs[index];
    const uint64_t bit = UINT64_C(1) << attempt % ATTEMPTS_MAX;

    if (job->runs & bit)
        fault(index, "attempt %u began twice", attempt);
    if (job->n_ends > 0)
        fault(index, "attempt %u began after its end was told", attempt);
    if (attempt > ATTEMPTS && !stops)
        fault(index, "attempt %u of at most %u", attempt, ATTEMPTS);
    job->runs |= bit;
    job->n_runs++;
}

static void close_job(struct history *job)
{
    if (job->n_ends + job->n_refusals + job->n_unknown == 1)
        n_open--;
    else
        fault((uint32_t)(job - jobs), "%u ends, %u refusals, %u unknown were told", job->n_ends,
              job->n_refusals, job->n_unknown);
}

void model_refused(uint32_t index, int error)
{
    struct history *job = &jobs[index];

    job->n_refusals++;
    job->error = error;
    close_job(job);
    if (job->runs != 0)
        fault(index, "refused (%d), but it has run", error);
}

void model_may_be_cancelled(uint32_t index)
{
    jobs[index].may_be_cancelled = true;
}

void model_unknown(uint32_t index)
{
    jobs[index].n_unknown++;
    close_job(&jobs[index]);
}

void model_ended(uint32_t index, int end, unsigned attempts, bool right_result)
{
    struct history *job = &jobs[index];

    job->n_ends++;
    job->end = end;
    job->attempts = attempts;
    close_job(job);
    if (!right_result)
        fault(index, "wrong result");
    if (end == TROUPE_SUCCEEDED && job->n_runs == 0)
        fault(index, "succeeded without a run");
    if (end == TROUPE_SUCCEEDED && job->job.kind != MODEL_SUCCEED && job->job.kind != MODEL_SLOW)
        fault(index, "succeeded, but its kind is %u", job->job.kind);
    if (end == TROUPE_CANCELLED && !job->may_be_cancelled)
        fault(index, "cancelled, but nobody asked for it");
    if (end == TROUPE_REJECTED && job->job.kind != MODEL_REJECT)
        fault(index, "rejected, but its kind is %u", job->job.kind);
    if (job->n_runs > attempts)
        fault(index, "%u runs, but %u attempts were told", job->n_runs, attempts);
}

unsigned model_judge(void)
{
    for (uint32_t i = 0; i < n_jobs; i++)
        if (jobs[i].n_ends + jobs[i].n_refusals + jobs[i].n_unknown == 0)
            fault(i, "no end was told (durable %d, kind %u)", jobs[i].job.durable,
                  jobs[i].job.kind);
    return n_faults;
}
