/* SPDX-License-Identifier: MIT */
#include "tests/world/model.h"

#include "tests/world/machine.h"
#include "tests/world/sched.h"
#include "worker/troupe.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define JOBS_MAX     65536
#define ATTEMPTS_MAX 64
/* How often a client asks for a job that may be on disk, where some rows could not be read. */
#define ASKED_MAX 1000
/* What must happen at a time happens within this time, not counting that without supervisor. */
#define LATE (10 * USEC_PER_SEC)
/* What a worker has saved is on disk within this time, counted likewise. */
#define WRITTEN (5 * USEC_PER_SEC)
/* How many attempts workers may have in hand, and begin later than a rate allows. */
#define IN_HAND  24
#define AT_WORK  64
#define KEYS_MAX 4
/* Dates are rounded and converted. */
#define ROUNDING USEC_PER_MSEC

struct history {
    struct model_job job;
    unsigned n_ends, n_refusals, n_unknown;
    bool may_be_cancelled, is_slot;
    unsigned n_unsure;
    uint64_t runs; /* a bit per attempt */
    unsigned n_runs;
    usec_t submitted_at, told_at; /* told_at: 0 = not yet */
    usec_t began_at;              /* the last run */
    usec_t run_since;             /* the same; machine_ready_time(), as the next two */
    usec_t end_by;                /* as a deadline or a request says; USEC_INFINITY = at any time */
    usec_t saved_at;
    usec_t pauses_until;
    unsigned pause_crash, save_crash;     /* n_crashes then */
    unsigned saved, maybe_saved, written; /* numbers of checkpoints; the last one is on disk */
};

static struct history jobs[JOBS_MAX];
static uint32_t n_jobs, n_open;
static unsigned n_faults, allowed, n_cuts, n_crashes;
static usec_t ended_at; /* the last supervisor; machine_ready_time() */
struct model_group model_groups[2];
struct model_job model_slot_job;
/* When the next attempt would begin at even intervals, by group and key. */
static usec_t rates[2][KEYS_MAX];
/* Attempts that workers may be at. */
static struct {
    const struct sim_process *worker;
    uint32_t index;
} at_work[AT_WORK];
static unsigned n_at_work;

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

bool model_allows(unsigned what)
{
    return allowed & what;
}

void model_cut(void)
{
    n_cuts++;
}

void model_supervisor_ends(bool crashes)
{
    for (uint32_t i = 0; i < n_jobs; i++)
        if (jobs[i].job.durable && jobs[i].save_crash == n_crashes &&
            machine_ready_time() > jobs[i].saved_at + WRITTEN)
            jobs[i].written = jobs[i].saved;
    n_crashes += crashes;
    ended_at = machine_ready_time();
}

/* Returns n_crashes, if the supervisor has read its rows: it may drop what workers say before. */
static unsigned crash_of_now(void)
{
    return ended_at == 0 || machine_ready_time() > ended_at + WRITTEN ? n_crashes : UINT_MAX;
}

uint32_t model_n_open(void)
{
    return n_open;
}

/* ---- limits and unique keys ---- */

void model_stops(uint32_t index)
{
    for (unsigned i = n_at_work; i-- > 0;)
        if (at_work[i].index == index || sim_is_dead(at_work[i].worker))
            at_work[i] = at_work[--n_at_work];
}

static bool is_same_group(const struct model_job *a, const struct model_job *b, bool per_key)
{
    return a->durable == b->durable && (!per_key || a->key == b->key);
}

/* Without memory or disk, a schedule may not know that a job of it is live. */
static bool is_same_unique(const struct model_job *a, const struct model_job *b)
{
    const bool is_slot = a->unique == MODEL_UNIQUE_SLOT;

    return a->unique != 0 && a->unique == b->unique && a->durable == b->durable &&
           !(is_slot ? allowed & MODEL_DISK_FAULTS : model_groups[a->durable].until_start);
}

/* Everything has ended, and what was decided about slots was perhaps not written. */
static bool slots_may_return(void)
{
    return n_cuts > 0 && allowed & MODEL_DISK_FAULTS;
}

/* Looks at the others that are at work. */
static void check_limits(uint32_t index)
{
    const struct model_job *job = &jobs[index].job;
    const struct model_group *group = &model_groups[job->durable];
    unsigned n = 1;

    model_stops(index);
    for (unsigned i = 0; i < n_at_work; i++) {
        const struct model_job *other = &jobs[at_work[i].index].job;

        n += is_same_group(job, other, group->running_per_key);
        if (is_same_unique(job, other))
            fault(index, "runs beside job %u, which has its unique key", at_work[i].index);
    }
    if (group->running > 0 && n > group->running)
        fault(index, "is one of %u that run, with Running=%u", n, group->running);
    if (n_at_work < AT_WORK) {
        at_work[n_at_work].worker = sim_self();
        at_work[n_at_work++].index = index;
    }
}

static void check_rate(uint32_t index)
{
    const struct model_job *job = &jobs[index].job;
    const struct model_group *group = &model_groups[job->durable];
    usec_t *next = &rates[job->durable][group->rate_per_key ? job->key % KEYS_MAX : 0];

    if (group->rate == 0)
        return;
    *next = (*next > sim_now() ? *next : sim_now()) + USEC_PER_SEC / group->rate;
    if (*next > sim_now() + IN_HAND * USEC_PER_SEC / group->rate)
        fault(index, "begins sooner than Rate=%u allows", group->rate);
}

/* No job with its unique key has begun since its last attempt: it was live all the time. */
static void check_unique(uint32_t index)
{
    for (uint32_t i = 0; jobs[index].n_runs > 0 && i < n_jobs; i++)
        if (i != index && jobs[i].began_at > jobs[index].began_at &&
            is_same_unique(&jobs[i].job, &jobs[index].job))
            fault(index, "job %u has begun between its attempts, with its unique key", i);
}

/* Another job had its unique key when it was refused, or may have had it. */
static void check_conflict(uint32_t index)
{
    const struct history *job = &jobs[index];

    for (uint32_t i = 0; i < n_jobs; i++)
        if (i != index && jobs[i].job.unique == job->job.unique &&
            jobs[i].job.durable == job->job.durable &&
            (jobs[i].told_at == 0 || jobs[i].told_at >= job->submitted_at || jobs[i].n_unknown > 0))
            return;
    fault(index, "refused, but no job has its unique key");
}

/* ---- jobs ---- */

void model_pauses(uint32_t index, usec_t until)
{
    jobs[index].pauses_until = until;
    jobs[index].pause_crash = crash_of_now();
}

void model_saves(uint32_t index, unsigned number)
{
    jobs[index].maybe_saved = number;
}

void model_saved(uint32_t index)
{
    struct history *job = &jobs[index];

    job->saved = job->maybe_saved;
    job->saved_at = machine_ready_time();
    job->save_crash = crash_of_now();
}

void model_found(uint32_t index, unsigned number, bool right)
{
    const struct history *job = &jobs[index];
    const unsigned least = job->save_crash == n_crashes ? job->saved : job->written;

    if (!right || number > job->maybe_saved)
        fault(index, "wrong checkpoint");
    if (number < least && !(allowed & MODEL_DISK_FAULTS))
        fault(index, "checkpoint %u was found, but %u was saved", number, least);
}

void model_run(uint32_t index, unsigned attempt, bool right_payload)
{
    struct history *job = &jobs[index];
    const uint64_t bit = UINT64_C(1) << attempt % ATTEMPTS_MAX;

    if (!right_payload)
        fault(index, "wrong payload");
    if (job->runs & bit && !(job->is_slot && slots_may_return()))
        fault(index, "attempt %u began twice", attempt);
    if (job->n_ends + job->n_refusals > 0)
        fault(index, "attempt %u began after its end was told", attempt);
    if (sim_now() + ROUNDING < job->submitted_at + job->job.delay && !(allowed & MODEL_CLOCK))
        fault(index, "began before its delay was over");
    if (sim_now() + ROUNDING < job->pauses_until && job->pause_crash == n_crashes &&
        !(allowed & MODEL_CLOCK))
        fault(index, "began before the pause was over that its worker chose");
    check_limits(index);
    check_rate(index);
    check_unique(index);
    job->runs |= bit;
    job->n_runs++;
    job->began_at = sim_now();
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
    job->told_at = sim_now();
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
    if (error == -ENOTUNIQ || error == -EEXIST)
        check_conflict(index);
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
        job->job.unique != TROUPE_CONFLICT_REPLACE &&
        !(allowed & MODEL_CLOCK && job->job.deadline > 0))
        fault(index, "cancelled, but nobody asked for it");
    if (end == TROUPE_DEAD && job->job.durable && attempts < MODEL_ATTEMPTS)
        fault(index, "dead after %u attempts", attempts);
    if (end == TROUPE_REJECTED && job->job.kind != MODEL_REJECT)
        fault(index, "rejected, but its kind is %u", job->job.kind);
    if (job->n_runs > attempts)
        fault(index, "%u runs, but %u attempts were told", job->n_runs, attempts);
}

/* ---- slots ---- */

#define SLOTS_MAX 4096

static struct {
    char id[64];
    uint32_t index;
    bool fired, not_fired; /* as the supervisor has said */
} slots[SLOTS_MAX];
static uint32_t n_slots;

static uint32_t find_slot(const char *id)
{
    for (uint32_t i = 0; i < n_slots; i++)
        if (strcmp(slots[i].id, id) == 0)
            return i;
    (void)snprintf(slots[n_slots].id, sizeof(slots[n_slots].id), "%s", id);
    slots[n_slots].index = n_jobs;
    jobs[n_jobs++] = (struct history){
        .job = model_slot_job, .is_slot = true, .n_unknown = 1, .end_by = USEC_INFINITY};
    return n_slots++;
}

uint32_t model_slot(const char *id)
{
    const uint32_t slot = find_slot(id);

    if (slots[slot].not_fired && !slots_may_return())
        model_fault("slot %s runs, but was not fired", id);
    return slots[slot].index;
}

void model_slot_decided(const char *id, bool fired)
{
    const uint32_t slot = find_slot(id);

    slots[slot].fired |= fired;
    slots[slot].not_fired |= !fired;
    if (slots[slot].not_fired && (slots[slot].fired || jobs[slots[slot].index].n_runs > 0) &&
        !slots_may_return())
        model_fault("slot %s has two outcomes", id);
}

void model_slots_counted(uint64_t n, uint64_t expected)
{
    if (n != expected && !(allowed & MODEL_DISK_FAULTS))
        model_fault("%u slots were decided, of %u", (unsigned)n, (unsigned)expected);
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
    for (uint32_t i = 0; i < n_slots; i++)
        if (slots[i].fired && model_slot_job.durable && !(allowed & MODEL_SLOTS_END) &&
            jobs[slots[i].index].n_runs == 0)
            model_fault("slot %s was fired, but its job has not run", slots[i].id);
    for (uint32_t i = 0; i < n_jobs; i++)
        if (jobs[i].n_ends + jobs[i].n_refusals + jobs[i].n_unknown == 0)
            fault(i, "no end was told (durable %d, kind %u)", jobs[i].job.durable,
                  jobs[i].job.kind);
    return n_faults;
}
