/* SPDX-License-Identifier: MIT */
#include "tests/world/model.h"

#include "tests/world/machine.h"
#include "tests/world/sched.h"
#include "worker/troupe.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define JOBS_MAX     65536
#define ATTEMPTS_MAX 64
/* What must happen at a time happens within this time, not counting that without supervisor. */
#define LATE (10 * USEC_PER_SEC)
/* What a worker has saved is on disk within this time, counted likewise. */
#define WRITTEN (5 * USEC_PER_SEC)
/* How many attempts workers may have in hand, and begin later than a rate allows. */
#define IN_HAND  24
#define AT_WORK  64
#define KEYS_MAX 4

static struct model_job jobs[JOBS_MAX];
static uint32_t n_jobs = 1; /* the job 0 is none */
uint32_t model_n_open;
unsigned model_allowed;
unsigned model_n_cuts;
usec_t model_calm_since = USEC_INFINITY;
static unsigned n_crashes;
static usec_t ended_at; /* the last supervisor; machine_ready_time() + 1 */
struct model_group model_groups[2];
unsigned model_shared;
struct model_job model_slot_job;
/* When the next attempt would begin at even intervals, by group and key. */
static usec_t rates[2][KEYS_MAX];
/* Attempts that workers may be at. */
static struct {
    const struct sim_process *worker;
    uint32_t index;
} at_work[AT_WORK];
static unsigned n_at_work;

#define expect(index, holds, format, ...) sim_expect(holds, "job %u: " format, index, ##__VA_ARGS__)

uint32_t model_add(struct model_job *job)
{
    job->may_be_cancelled = jobs[n_jobs].may_be_cancelled; /* the operator may be ahead */
    jobs[n_jobs] = *job;
    jobs[n_jobs].submitted_at = sim_now();
    jobs[n_jobs].end_by =
        job->deadline > 0 ? machine_ready_time() + job->deadline + LATE : USEC_INFINITY;
    model_n_open++;
    return n_jobs++;
}

struct model_job *model_job(uint32_t index)
{
    return &jobs[index];
}

void model_supervisor_ends(bool crashes)
{
    for (uint32_t i = 1; i < n_jobs; i++)
        if (jobs[i].durable && jobs[i].save_crash == n_crashes &&
            machine_ready_time() > jobs[i].saved_at + WRITTEN)
            jobs[i].written = jobs[i].saved;
    n_crashes += crashes;
    ended_at = machine_ready_time() + 1;
}

/* Returns n_crashes, if the supervisor has read its rows: it may drop what workers say before. */
static unsigned crash_of_now(void)
{
    return ended_at == 0 || machine_ready_time() > ended_at + WRITTEN ? n_crashes : UINT_MAX;
}

/* ---- limits and unique keys ---- */

void model_stops(uint32_t index)
{
    for (unsigned i = n_at_work; i-- > 0;) {
        const struct sim_process *worker = at_work[i].worker;

        if (at_work[i].index != index && !worker->dead)
            continue;
        jobs[at_work[i].index].n_killed += worker->dead && worker->code == SIGKILL;
        at_work[i] = at_work[--n_at_work];
    }
}

/* Without memory or disk, a schedule may not know that a job of it is live. */
static bool is_same_unique(const struct model_job *a, const struct model_job *b)
{
    const bool is_slot = a->unique == MODEL_UNIQUE_SLOT;

    return a->unique != 0 && a->unique == b->unique && a->durable == b->durable &&
           !(is_slot ? model_allowed & MODEL_DISK_FAULTS : model_groups[a->durable].until_start);
}

/* Everything has ended, and what was decided about slots was perhaps not written. */
static bool slots_may_return(void)
{
    return model_n_cuts > 0 && model_allowed & MODEL_DISK_FAULTS;
}

/* Looks at the others that are at work. */
static void check_limits(uint32_t index)
{
    const struct model_job *job = &jobs[index];
    const struct model_group *group = &model_groups[job->durable];
    unsigned n = 1, n_units = job->cost, n_sharers = 0;

    model_stops(index);
    for (unsigned i = 0; i < n_at_work; i++) {
        const struct model_job *other = &jobs[at_work[i].index];

        n += other->durable == job->durable && (other->key == job->key || !group->running_per_key);
        n_sharers += model_groups[other->durable].shares;
        n_units += model_groups[other->durable].shares ? other->cost : 0;
        expect(index, !is_same_unique(job, other), "runs beside job %u, which has its unique key",
               at_work[i].index);
    }
    expect(index, group->running == 0 || n <= group->running,
           "is one of %u that run, with Running=%u", n, group->running);
    expect(index, !group->shares || n_sharers == 0 || n_units <= model_shared,
           "is one of those that take %u units, with Running=%u for all", n_units, model_shared);
    if (n_at_work < AT_WORK) {
        at_work[n_at_work].worker = sim_self;
        at_work[n_at_work++].index = index;
    }
}

static void check_rate(uint32_t index)
{
    const struct model_job *job = &jobs[index];
    const struct model_group *group = &model_groups[job->durable];
    usec_t *next = &rates[job->durable][group->rate_per_key ? job->key % KEYS_MAX : 0];

    if (group->rate == 0)
        return;
    *next = (*next > sim_now() ? *next : sim_now()) + USEC_PER_SEC / group->rate;
    expect(index, *next <= sim_now() + IN_HAND * USEC_PER_SEC / group->rate,
           "begins sooner than Rate=%u allows", group->rate);
}

/* No job with its unique key has begun since its last attempt: it was live all the time. None that
 * waits for its end has begun. */
static void check_others(uint32_t index)
{
    for (uint32_t i = 1; i < n_jobs; i++) {
        expect(index,
               i == index || jobs[index].n_runs == 0 || jobs[i].began_at <= jobs[index].began_at ||
                   !is_same_unique(&jobs[i], &jobs[index]),
               "job %u has begun between its attempts, with its unique key", i);
        expect(index, jobs[i].parent != index || jobs[i].n_runs == 0,
               "job %u has begun, which waits for it", i);
    }
}

/* Another job had its unique key when it was refused, or may have had it. */
static bool had_conflict(uint32_t index)
{
    const struct model_job *job = &jobs[index];

    for (uint32_t i = 1; i < n_jobs; i++)
        if (i != index && jobs[i].unique == job->unique && jobs[i].durable == job->durable &&
            (jobs[i].fate == MODEL_OPEN || jobs[i].fate == MODEL_UNKNOWN ||
             jobs[i].told_at >= job->submitted_at))
            return true;
    return false;
}

/* ---- jobs ---- */

void model_pauses(uint32_t index, usec_t until)
{
    jobs[index].pauses_until = until;
    jobs[index].pause_crash = crash_of_now();
}

void model_saved(uint32_t index)
{
    struct model_job *job = &jobs[index];

    job->saved = job->maybe_saved;
    job->saved_at = machine_ready_time();
    job->save_crash = crash_of_now();
}

void model_found(uint32_t index, unsigned number, bool right)
{
    const struct model_job *job = &jobs[index];
    const unsigned least = job->save_crash == n_crashes ? job->saved : job->written;

    expect(index, right && number <= job->maybe_saved, "wrong checkpoint");
    expect(index, number >= least || model_allowed & MODEL_DISK_FAULTS,
           "checkpoint %u was found, but %u was saved", number, least);
}

void model_run(uint32_t index, unsigned attempt, bool right_payload)
{
    struct model_job *job = &jobs[index];
    const uint64_t bit = UINT64_C(1) << attempt % ATTEMPTS_MAX;
    const bool other_clock = model_allowed & MODEL_CLOCK;

    expect(index, right_payload, "wrong payload");
    expect(index, !job->not_fired || slots_may_return(), "slot %s was not fired", job->slot);
    expect(index, !(job->runs & bit) || (*job->slot && slots_may_return()),
           "attempt %u began twice", attempt);
    expect(index, job->fate == MODEL_OPEN || job->fate == MODEL_UNKNOWN,
           "attempt %u began after its end was told", attempt);
    expect(index, model_has_come(job->submitted_at + job->delay) || other_clock,
           "began before its delay was over");
    expect(index, model_has_come(job->pauses_until) || job->pause_crash != n_crashes || other_clock,
           "began before the pause was over that its worker chose");
    check_limits(index);
    check_rate(index);
    check_others(index);
    job->runs |= bit;
    job->n_runs++;
    job->began_at = sim_now();
    job->run_since = machine_ready_time();
    expect(index,
           job->n_runs <= MODEL_ATTEMPTS + model_n_cuts +
                              job->n_killed * model_groups[job->durable].shrinks ||
               model_allowed & MODEL_STOPS || (*job->slot && slots_may_return()),
           "run %u, with %u retries", job->n_runs, MODEL_ATTEMPTS - 1);
}

static void check_end_by(const struct model_job *job)
{
    const usec_t now = machine_ready_time();
    const bool is_calm = now > usec_add(model_calm_since, LATE);
    const usec_t more = model_allowed & MODEL_CLOCK ? model_n_cuts * job->deadline : 0;

    expect((uint32_t)(job - jobs),
           now <= usec_add(job->end_by, more) || (model_allowed & MODEL_DISK_FAULTS && !is_calm),
           "should have ended before");
}

void model_works(uint32_t index)
{
    const struct model_job *job = &jobs[index];

    check_end_by(job);
    expect(index,
           job->kind != MODEL_STUCK || machine_ready_time() <= job->run_since + MODEL_LIMIT + LATE,
           "works beyond its time limit");
}

static void close_job(struct model_job *job, enum model_fate fate)
{
    expect((uint32_t)(job - jobs), job->fate == MODEL_OPEN, "its end is told again");
    job->fate = fate;
    job->told_at = sim_now();
    model_n_open--;
}

void model_refused(uint32_t index, int error)
{
    struct model_job *job = &jobs[index];

    close_job(job, MODEL_REFUSED);
    expect(index, job->runs == 0 || job->n_unsure > 0, "refused (%d), but it has run", error);
    expect(index, (error != -ENOTUNIQ && error != -EEXIST) || had_conflict(index),
           "refused, but no job has its unique key");
    expect(index, error != -EBADMSG || model_allowed & MODEL_REMOVES,
           "refused: the group's file has a mistake");
}

void model_is_cancelled(uint32_t index)
{
    jobs[index].end_by = usec_min(
        jobs[index].end_by, machine_ready_time() + model_groups[jobs[index].durable].behind + LATE);
}

void model_unknown(uint32_t index)
{
    close_job(&jobs[index], MODEL_UNKNOWN);
}

static bool may_be_cancelled(const struct model_job *job)
{
    return job->may_be_cancelled || job->unique == TROUPE_CONFLICT_REPLACE ||
           model_allowed & MODEL_REMOVES ||
           (job->deadline > 0 &&
            (model_has_come(job->submitted_at + job->deadline) || model_allowed & MODEL_CLOCK));
}

void model_ended(uint32_t index, const struct troupe_result *result, bool right_result)
{
    struct model_job *job = &jobs[index];
    const uint32_t kind = job->kind;
    const bool succeeds = result->end == TROUPE_SUCCEEDED;

    close_job(job, MODEL_ENDED);
    check_end_by(job);
    job->end = (int)result->end;
    job->misses_parent = result->cause == TROUPE_CAUSE_DEPENDENCY;
    expect(index, right_result, "wrong result");
    expect(index, !succeeds || job->n_runs > 0, "succeeded without a run");
    expect(index, !succeeds || kind == MODEL_SUCCEED || kind == MODEL_SLOW,
           "succeeded, but its kind is %u", kind);
    expect(index, result->end != TROUPE_CANCELLED || job->misses_parent || may_be_cancelled(job),
           "cancelled, but nobody asked for it");
    expect(index, result->end != TROUPE_DEAD || !job->durable || result->attempts >= MODEL_ATTEMPTS,
           "dead after %u attempts", result->attempts);
    expect(index, result->end != TROUPE_REJECTED || kind == MODEL_REJECT,
           "rejected, but its kind is %u", kind);
    expect(index, job->n_runs <= result->attempts, "%u runs, but %u attempts were told",
           job->n_runs, result->attempts);
}

/* It has run if its parent has ended as it had to, else it was cancelled. */
static void check_parent(uint32_t index)
{
    const struct model_job *job = &jobs[index], *parent = &jobs[job->parent];
    bool holds;

    if (job->parent == 0 || job->fate != MODEL_ENDED || parent->fate != MODEL_ENDED)
        return;
    holds = job->condition == TROUPE_CONDITION_END ||
            (parent->end == TROUPE_SUCCEEDED) == (job->condition == TROUPE_CONDITION_SUCCESS);
    expect(index, holds || job->n_runs == 0, "has run, but job %u has ended otherwise",
           job->parent);
    expect(index, !holds || !job->misses_parent, "cancelled, but job %u has ended as it had to",
           job->parent);
}

/* ---- slots ---- */

uint32_t model_slot(const char *id)
{
    struct model_job *job = jobs + n_jobs;

    for (uint32_t i = 1; i < n_jobs; i++)
        if (strcmp(jobs[i].slot, id) == 0)
            return i;
    *job = model_slot_job;
    job->end_by = USEC_INFINITY;
    job->fate = MODEL_UNKNOWN;
    (void)snprintf(job->slot, sizeof(job->slot), "%s", id);
    return n_jobs++;
}

void model_slot_decided(const char *id, bool fired)
{
    struct model_job *job = model_job(model_slot(id));

    job->fired |= fired;
    job->not_fired |= !fired;
    sim_expect(!job->not_fired || (!job->fired && job->n_runs == 0) || slots_may_return(),
               "slot %s has two outcomes", id);
}

void model_judge(void)
{
    const bool must_run = model_slot_job.durable && !(model_allowed & MODEL_SLOTS_END);

    for (uint32_t i = 1; i < n_jobs; i++) {
        check_parent(i);
        expect(i, jobs[i].fate != MODEL_OPEN, "no end was told (durable %d, kind %u)",
               jobs[i].durable, jobs[i].kind);
        sim_expect(!jobs[i].fired || !must_run || jobs[i].n_runs > 0,
                   "slot %s was fired, but its job has not run", jobs[i].slot);
    }
}
