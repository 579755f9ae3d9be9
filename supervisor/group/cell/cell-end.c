/* SPDX-License-Identifier: MIT */
/* Ends jobs: counts them, notifies waiters, keeps results and dead letters. */

#include "supervisor/event/death.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/job-event.h"
#include "supervisor/group/group.h"
#include "supervisor/loop/loop.h"
#include "supervisor/message/message-context.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Passes the cell's reference on to the group's kept results, or drops it. */
static void cell_let_go(struct cell *cell, struct job *job)
{
    const struct config_group *config = cell->config;

    job->cell = NULL;
    if (job->keep_result && config->results_max > 0 && config->result_ttl > 0) {
        kept_results_add(&cell->group->results, job);
    } else {
        job->group = NULL;
        job_unref(cell->context->jobs, job);
    }
}

/* Measures jobs that a worker ended, unless their sender delayed them. */
static void cell_note_latency(struct cell *cell, const struct job *job)
{
    usec_t took = usec_sub(job->ended_at, job->created_at);
    usec_t worked = job->started_at > 0 ? usec_sub(job->ended_at, job->started_at) : 0;

    if (job->put_off || (job->state != JOB_SUCCEEDED && job->state != JOB_REJECTED))
        return;
    for (struct job_history *history = &cell->history; history; history = history->parent) {
        latency_add(&history->latency, took);
        latency_add(&history->work, worked);
    }
}

static void cell_note_dead(struct cell *cell, const struct job *job)
{
    struct group_dead *dead = &cell->group->last_dead;

    dead->id = job->id;
    dead->at = job->ended_at;
    (void)snprintf(dead->reason, sizeof(dead->reason), "%s", job->reason ? job->reason : "");
}

static void cell_note_outcome(struct cell *cell, const struct job *job)
{
    const bool dead = job->state == JOB_DEAD;

    if (job->state == JOB_CANCELLED)
        return; /* says nothing about the cell */
    for (struct job_history *history = &cell->history; history; history = history->parent)
        outcomes_add(&history->outcomes, dead, job->ended_at);
    if (dead)
        cell_note_dead(cell, job);
}

/* Finds the last reports of workers that had the job in hand, oldest first. Returns their number.
 */
static size_t find_deaths(const struct death_log *log, const struct job *job,
                          struct death *ret[DEAD_LETTER_DEATHS_MAX])
{
    struct death *found[DEAD_LETTER_DEATHS_MAX];
    char id[PROTOCOL_ID_TEXT];
    size_t wanted = 0, n = 0, n_searched = 0;

    for (size_t i = 0; i < job->n_attempts && wanted < DEAD_LETTER_DEATHS_MAX; i++)
        wanted += strcmp(job->attempts[i].cause, "retry") != 0;
    protocol_id_format(&job->id, id);
    list_for_each (node, &log->deaths) {
        struct death *death = list_entry(node, struct death, link);

        if (n == wanted || n_searched++ == DEATHS_SEARCHED)
            break;
        if (strcmp(death->job, id) == 0)
            found[n++] = death;
    }
    for (size_t i = 0; i < n; i++)
        ret[i] = found[n - 1 - i];
    return n;
}

static void cell_write_dead_letter(struct cell *cell, struct job *job)
{
    const struct group_context *context = cell->context;
    struct death *deaths[DEAD_LETTER_DEATHS_MAX];
    struct payload payload = PAYLOAD_NULL;
    char id[PROTOCOL_ID_TEXT];
    const struct dead_letter_facts facts = {
        .reason = DEAD_JOB,
        .recipient = cell->name,
        .topic = {.type = "", .key = job->key, .key_size = job->key_size},
        .sent_at = job->created_at,
        .job = protocol_id_format(&job->id, id),
        .submitter_uid = job->submitter_uid,
        .code = job->code,
        .options = job->asked,
        .text = job->reason,
        .attempts = job->n_failed,
        .deaths = deaths,
        .n_deaths = find_deaths(context->deaths, job, deaths),
    };

    payload_move(&payload, &job->payload);
    (void)dead_letter_add(&context->messages->dead_letters, &facts, &payload);
}

static const enum job_count ENDS[_JOB_N_STATES] = {
    [JOB_SUCCEEDED] = JOBS_SUCCEEDED,
    [JOB_REJECTED] = JOBS_REJECTED,
    [JOB_CANCELLED] = JOBS_CANCELLED,
    [JOB_DEAD] = JOBS_DEAD,
};

void cell_end_job(struct cell *cell, struct job *job, enum job_state state, const char *reason)
{
    assert(!list_linked(&job->link));
    cell_progress_moved(cell);
    if (timer_armed(&job->deadline))
        timer_disarm(cell_timers(cell), &job->deadline);
    job_set_state(job, state);
    job->ended_at = loop_realtime(cell->context->loop);
    cell_note_latency(cell, job);
    if (reason)
        job_set_reason(job, reason);
    job_count(&cell->counts, ENDS[state], 1);
    cell_note_outcome(cell, job);
    job_count(&cell->counts, JOBS_BYTES, -(int64_t)job->payload.size);
    if (state == JOB_DEAD)
        cell_write_dead_letter(cell, job);
    payload_deinit(&job->payload);
    job_count(&cell->counts, JOBS_LIVE, -1);
    job_event(job, "job.ended", NULL, "has ended: %s, %" PRIu64 " ms after it was accepted",
              job_state_to_string(job->state),
              usec_sub(job->ended_at, job->created_at) / USEC_PER_MSEC);
    job_tell_waiters(job);
    cell_let_go(cell, job);
    if (cell->group->removed || !list_empty(&cell->waiting))
        cell_wake(cell);
    if (cell->counts.n[JOBS_LIVE] == 0) {
        cell->idle_since = cell_now(cell);
        cell_watch_idle(cell);
    }
}

void cell_end_cancelled(struct cell *cell, struct job *job)
{
    char reason[48] = "cancelled";

    if (job->timed_out)
        (void)snprintf(reason, sizeof(reason), "its deadline is over");
    else if (job->canceller_known)
        (void)snprintf(reason, sizeof(reason), "cancelled by uid %u", (unsigned)job->canceller);
    cell_end_job(cell, job, JOB_CANCELLED, reason);
}
