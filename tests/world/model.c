/* SPDX-License-Identifier: MIT */
#include "tests/world/model.h"

#include "tests/world/machine.h"
#include "tests/world/sched.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define JOBS_MAX     65536
#define ATTEMPTS_MAX 64
/* How often a client asks for a job that may be on disk, where some rows could not be read. */
#define ASKED_MAX 1000
/* What must happen at a time happens within this time, not counting that without supervisor. */
#define LATE (10 * USEC_PER_SEC)
/* Dates are rounded and converted. */
#define ROUNDING USEC_PER_MSEC

struct history {
    struct model_job job;
    unsigned n_ends, n_refusals, n_unknown;
    bool may_be_cancelled;
    unsigned n_unsure;
    uint64_t runs; /* a bit per attempt */
    unsigned n_runs;
    usec_t submitted_at;
    usec_t run_since; /* the last run; machine_ready_time(), as the next one */
    usec_t end_by;    /* as a deadline or a request says; USEC_INFINITY = at any time */
};

static struct history jobs[JOBS_MAX];
static uint32_t n_jobs, n_open;
static unsigned n_faults, allowed, n_cuts;

void model_fault(const char *format, ...)
{
    va_list list;
    char text[1024];

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    n_faults++;
    dprintf(SIM_TRACE_FD, "FAULT: %s\n", text);
}

#define fault(index, format, ...) model_fault("job %u: " format, index, ##__VA_ARGS__)

uint32_t model_add(const struct model_job *job)
{
    jobs[n_jobs].job = *job;
    jobs[n_jobs].submitted_at = sim_now();
    jobs[n_jobs].end_by =
        job->deadline > 0 ? machine_ready_time() + job->deadline + LATE : USEC_INFINITY;
    n_open++;
    return n_jobs++;
}

const struct model_job *model_job(uint32_t index)
{
    return &jobs[index].job;
}

void model_allow(unsigned what)
{
    allowed |= what;
}

void model_cut(void)
{
    n_cuts++;
}

uint32_t model_n_open(void)
{
    return n_open;
}

void model_run(uint32_t index, unsigned attempt, bool right_payload)
{
    struct history *job = &jobs[index];
    const uint64_t bit = UINT64_C(1) << attempt % ATTEMPTS_MAX;

    if (!right_payload)
        fault(index, "wrong payload");
    if (job->runs & bit)
        fault(index, "attempt %u began twice", attempt);
    if (job->n_ends + job->n_refusals > 0)
        fault(index, "attempt %u began after its end was told", attempt);
    if (sim_now() + ROUNDING < job->submitted_at + job->job.delay && !(allowed & MODEL_CLOCK))
        fault(index, "began before its delay was over");
    job->runs |= bit;
    job->n_runs++;
    if (job->n_runs > MODEL_ATTEMPTS + n_cuts && !(allowed & MODEL_STOPS))
        fault(index, "run %u, with %u retries", job->n_runs, MODEL_ATTEMPTS - 1);
    job->run_since = machine_ready_time();
}

static void check_end_by(uint32_t index)
{
    struct history *job = &jobs[index];

    if (machine_ready_time() > job->end_by && !(allowed & (MODEL_CLOCK | MODEL_DISK_FAULTS)))
        fault(index, "should have ended before");
    if (machine_ready_time() > job->end_by)
        job->end_by = USEC_INFINITY; /* once is enough */
}

void model_works(uint32_t index)
{
    struct history *job = &jobs[index];

    check_end_by(index);
    if (job->job.kind != MODEL_HANG || machine_ready_time() <= job->run_since + MODEL_LIMIT + LATE)
        return;
    fault(index, "works beyond its time limit");
    job->run_since = machine_ready_time();
}

static void close_job(struct history *job)
{
    if (job->n_ends + job->n_refusals + job->n_unknown == 1)
        n_open--;
    else
        fault((uint32_t)(job - jobs), "%u ends, %u refusals, %u unknown were told", job->n_ends,
              job->n_refusals, job->n_unknown);
}

bool model_unsure(uint32_t index)
{
    return ++jobs[index].n_unsure < ASKED_MAX;
}

bool model_is_unsure(uint32_t index)
{
    return jobs[index].n_unsure > 0;
}

void model_refused(uint32_t index, int error)
{
    struct history *job = &jobs[index];

    job->n_refusals++;
    close_job(job);
    if (job->runs != 0 && job->n_unsure == 0)
        fault(index, "refused (%d), but it has run", error);
    if (error == -EBADMSG)
        fault(index, "refused: the group's file has a mistake");
}

void model_may_be_cancelled(uint32_t index)
{
    jobs[index].may_be_cancelled = true;
}

void model_is_cancelled(uint32_t index)
{
    jobs[index].end_by = usec_min(jobs[index].end_by, machine_ready_time() + LATE);
}

void model_unknown(uint32_t index)
{
    jobs[index].n_unknown++;
    close_job(&jobs[index]);
}

static bool is_past_deadline(const struct history *job)
{
    return job->job.deadline > 0 && sim_now() + ROUNDING >= job->submitted_at + job->job.deadline;
}

void model_ended(uint32_t index, int end, unsigned attempts, bool right_result)
{
    struct history *job = &jobs[index];

    job->n_ends++;
    close_job(job);
    check_end_by(index);
    if (!right_result)
        fault(index, "wrong result");
    if (end == TROUPE_SUCCEEDED && job->n_runs == 0)
        fault(index, "succeeded without a run");
    if (end == TROUPE_SUCCEEDED && job->job.kind != MODEL_SUCCEED && job->job.kind != MODEL_SLOW)
        fault(index, "succeeded, but its kind is %u", job->job.kind);
    if (end == TROUPE_CANCELLED && !job->may_be_cancelled && !is_past_deadline(job) &&
        !(allowed & MODEL_CLOCK && job->job.deadline > 0))
        fault(index, "cancelled, but nobody asked for it");
    if (end == TROUPE_DEAD && job->job.durable && attempts < MODEL_ATTEMPTS)
        fault(index, "dead after %u attempts", attempts);
    if (end == TROUPE_REJECTED && job->job.kind != MODEL_REJECT)
        fault(index, "rejected, but its kind is %u", job->job.kind);
    if (job->n_runs > attempts)
        fault(index, "%u runs, but %u attempts were told", job->n_runs, attempts);
}

/* ---- messages ---- */

#define SESSIONS_MAX 4096

static struct {
    uint32_t heard[MODEL_HEARERS]; /* the last number, by hearer */
    uint32_t cancelled;            /* the last timer that was */
} sessions[SESSIONS_MAX];

void model_heard(uint32_t session, unsigned hearer, uint32_t number, bool again)
{
    uint32_t *last = &sessions[session % SESSIONS_MAX].heard[hearer];

    if (number < *last || (number == *last && !again))
        model_fault("message %u of session %u came after %u", number, session, *last);
    *last = number;
}

void model_timer(uint32_t session, uint32_t number, usec_t due)
{
    if (sim_now() + ROUNDING < due && !(allowed & MODEL_CLOCK))
        model_fault("timer %u of session %u came early", number, session);
    if (sessions[session % SESSIONS_MAX].cancelled == number)
        model_fault("timer %u of session %u came after it was cancelled", number, session);
}

void model_timer_cancelled(uint32_t session, uint32_t number)
{
    sessions[session % SESSIONS_MAX].cancelled = number;
}

unsigned model_judge(void)
{
    for (uint32_t i = 0; i < n_jobs; i++)
        if (jobs[i].n_ends + jobs[i].n_refusals + jobs[i].n_unknown == 0)
            fault(i, "no end was told (durable %d, kind %u)", jobs[i].job.durable,
                  jobs[i].job.kind);
    return n_faults;
}
