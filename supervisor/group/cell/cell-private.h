/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between cell-*.c. */

#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/store/durable-job.h"

#define job_of(node) list_entry(node, struct job, link)

/* The beginning of this turn, monotonic. */
usec_t cell_now(const struct cell *cell);

static inline struct timer_queue *cell_timers(const struct cell *cell)
{
    return loop_timers(cell->context->loop);
}

/* Steps the pool, matches jobs and slots, and calls waiters at the end of this turn. */
void cell_wake(struct cell *cell);

/* Puts a job in state queued into the queue, behind or before those of its priority. */
void cell_enqueue(struct cell *cell, struct job *job, bool first);
/* Like cell_enqueue(), but for a job in another state: sets it to queued first. */
void cell_requeue(struct cell *cell, struct job *job, bool first);

/* Has the job cancelled at this time (monotonic). Returns 0 or -ENOMEM. */
int cell_arm_deadline(struct cell *cell, struct job *job, usec_t at);

/* Removes a job that is not running from its list. */
void cell_take_out(struct cell *cell, struct job *job);

/* The first live job has come: lists the cell among those that have some. */
void cell_begin_live(struct cell *cell);
/* Counts one more live job. */
static inline void cell_count_live(struct cell *cell)
{
    job_count(&cell->counts, JOBS_LIVE, 1);
    if (!list_linked(&cell->live_link))
        cell_begin_live(cell);
}

/* ---- cell-elastic.c ---- */

void cell_elastic_init(struct cell *cell);
/* Called at the end of a turn: gives an elastic pool the size that its work needs. */
void cell_elastic_turn(struct cell *cell);

/* ---- cell-unique.c ---- */

/* The job has ended, is dropped, or releases its unique key for another reason. */
void cell_release_unique(struct job *job);
/* The job is accepted: cancels the one that it replaces. */
void cell_end_replaced(struct job *job);
/* Whether the key of a job that was read is released, since an attempt of it has begun. */
bool cell_has_released_key(const struct cell *cell, const struct job_row *row);

/* ---- cell-ties.c ---- */

/* Ties a new job to those that the request names. Returns 0 or -ENOMEM. */
int cell_tie(struct job *job, const struct cell_request_rare *request);
/* Makes a queued job in no list wait for others. */
void cell_pend(struct cell *cell, struct job *job);
/* The job has ended, or is dropped: decides what waits for it. */
void cell_end_ties(struct cell *cell, struct job *job);
/* Gives a job that is restored its ties. Returns 0, -ENOMEM or -EBADMSG. */
int cell_claim_ties(struct job *job, const struct job_row *row);

/* ---- cell-attempt.c ---- */

/* A running job waits before its next attempt. */
void cell_back_off(struct cell *cell, struct job *job, usec_t delay);
/* A new job waits for the time of the request. Returns 0 or -ENOMEM. */
int cell_delay(struct cell *cell, struct job *job, usec_t delay, usec_t at);

/* Sets the alarm that ends the delay, or with `at` > 0 at that date; it is not set yet. Returns 0
 * or -ENOMEM. */
int cell_set_alarm(struct cell *cell, struct job *job, usec_t delay, usec_t at);
/* Whether the last attempt ran out of memory, and the job continues in another group. */
bool cell_leaves_after_oom(const struct cell *cell, const struct job *job);
/* Ends the pause or the delay of a job, whose alarm is stopped. The job may end. */
void cell_end_wait(struct job *job);

/* Makes a queued job that was read from disk, in no list, wait in `state`: until its requested
 * date, or for the rest of its delay. */
void cell_resume_wait(struct cell *cell, struct job *job, enum job_state state,
                      const struct job_row *row);
/* Fails the attempt of a queued job that was read from disk, in no list, and was running when the
 * supervisor ended. */
void cell_job_orphaned(struct cell *cell, struct job *job);
/* Continues a queued job, in no list, whose last attempt failed before its row was read. `pause`:
 * that before the next attempt, as the worker chose it; 0 = it did not. */
void cell_job_failed_unread(struct cell *cell, struct job *job, usec_t pause);

/* Replaces the checkpoint of a live job, and counts its bytes. Returns 0; or -ENOMEM: the job keeps
 * the former one. */
int cell_set_checkpoint(struct cell *cell, struct job *job, const void *data, size_t size);

/* See struct pool_handler. */
void cell_job_started(struct pool *pool, struct job *job);
void cell_job_checkpoint(struct pool *pool, struct job *job, const void *data, size_t size);
void cell_job_emitted(struct pool *pool, struct job *job, const void *data, size_t size);
void cell_job_answered(struct pool *pool, struct job *job, const char *worker,
                       enum protocol_outcome outcome, int32_t code, usec_t pause,
                       struct payload *result);
void cell_job_returned(struct pool *pool, struct job *job);
void cell_job_lost(struct pool *pool, struct job *job, const struct death *death);

/* ---- cell-change.c ---- */

/* Counts a job that waits, and is in no list, in another cell, whose group decides about its
 * options from now on. */
void cell_transfer(struct job *job, struct cell *to);
/* The group decides what the submitter has not chosen, except for the attempts left. */
void cell_take_options(struct job *job);

/* ---- cell-restore.c ---- */

/* See struct pool_handler. */
struct job *cell_job_resumed(struct pool *pool, const struct job_page *page);
void cell_job_missed(struct pool *pool, const struct job_page *page);
/* Like cell_job_missed(), but for a worker without a cell. */
void cell_keep_missed(const struct group_context *context, const struct job_page *page);
/* Whether the job's payload went with the last supervisor, so that no other attempt is possible. */
static inline bool cell_is_restored(const struct job *job)
{
    return job->payload_lost && !(job->record && durable_job_is_unread(job));
}
/* Drops a job that no worker has any more, and whose row has not been read. State that the row
 * lacks is kept until it is read, as in an upgrade; without memory, only which attempts have ended.
 * `state`: JOB_ROW_WAITING; or JOB_ROW_BACKOFF, and cell_job_failed_unread() follows. */
void cell_leave_for_row(struct cell *cell, struct job *job, enum job_row_state state, usec_t pause);
/* Reports the end of such a job, for which no caller waits. */
void cell_tell_restored(struct cell *cell, const struct job *job);

/* ---- cell-durable.c ---- */

/* Whether a new durable job can be written. Returns 0, CELL_E_WAIT while the store is being opened,
 * or CELL_E_STORE_*. */
int cell_admit_durable(struct cell *cell, const struct cell_request *request);

/* Begins to write an end that has been decided. Returns false if it can be reported immediately. */
bool cell_write_end(struct cell *cell, struct job *job, enum job_state end);

/* Jobs of the cell stay on disk without it: they are read if its group comes back. */
void cell_note_left(struct cell *cell);
/* If the cell is closed, takes a durable job that waits out of memory; its row stays. */
void cell_leave_on_disk(struct cell *cell, struct job *job);

/* ---- cell-end.c ---- */

/* Notes for the history, if the group has one, what is lost when the job ends. `worker` NULL = none
 * had it. */
void cell_note_past_now(struct cell *cell, struct job *job, const char *worker);
static inline void cell_note_past(struct cell *cell, struct job *job, const char *worker)
{
    if (cell->config->history > 0)
        cell_note_past_now(cell, job, worker);
}
/* Drops the payload, which no worker will need again: the result takes its place. */
void cell_drop_payload(struct cell *cell, struct job *job);
/* Ends a job that is in no list of the cell: immediately, or when the end of a durable job has been
 * written. `reason` NULL = none. */
void cell_end_job(struct cell *cell, struct job *job, enum job_state state, const char *reason);
/* Ends the job for all who know it: counts, waiters, history, dead letters. */
void cell_tell_end(struct cell *cell, struct job *job, enum job_state state);
/* A live job has gone: calls waiters, and lets the cell become idle. */
void cell_note_gone(struct cell *cell);
/* Drops a job that is in no list from memory: it was not accepted after all, or its row stays.
 * `refusal`: CELL_E_*, for its waiters. */
void cell_drop_job(struct cell *cell, struct job *job, int refusal);
/* Whether the result is kept when the job has ended. */
static inline bool cell_keeps_result(const struct cell *cell, const struct job *job)
{
    return (job->keep_result && cell->config->results_max > 0 && cell->config->result_ttl > 0) ||
           (job_has_children(job) && job->refusal == 0);
}
/* Ends a job whose cancellation was requested. */
void cell_end_cancelled(struct cell *cell, struct job *job);

/*
 * Events of single jobs: accepted, started, retried, ended. There may be hundreds of thousands of
 * them per second, so they are neither logged nor kept, and cost one comparison while no
 * client watches.
 */

/* Sends an event of a job that is still its cell's; the message is the job's id and the formatted
 * text. `worker` may be NULL. */
void job_event_tell(const struct job *job, const char *type, const char *worker, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/* Like job_event_tell(), but only if somebody watches; otherwise evaluates only `job`. */
#define job_event(job, ...)                                                                        \
    do {                                                                                           \
        if ((job)->cell->context->events->job_subscribers.n_entries > 0)                           \
            job_event_tell((job), __VA_ARGS__);                                                    \
    } while (0)

/* The arguments with which each probe of a job begins: see probe.h. */
#define PROBE_JOB(job)                                                                             \
    (const char *)(job)->cell->group->name, (job)->id_high, (job)->id_low, (job)->name

/* Called after each step of a job, most of which are in cells without NoProgressSec=. */
static inline void cell_progress_moved(struct cell *cell)
{
    if (cell->config->no_progress != USEC_INFINITY)
        cell_progress_note(cell);
}

/* ---- cell-room.c ---- */

/* Returns whether the job of a `bounded` request exceeds its submitter's share. It does not wait:
 * jobs of others come first. */
bool cell_exceeds_share(const struct cell *cell, const struct cell_request *request);
/* Returns 0 = the queue has room, CELL_E_BUSY, or CELL_E_WAIT. */
int cell_find_room(struct cell *cell, const struct cell_request *request);
/* Lets the request's waiter wait until the store of durable jobs is open. Returns CELL_E_WAIT, or
 * CELL_E_STORE_FAILED without a waiter or after a long time. */
int cell_await_store(struct cell *cell, const struct cell_request *request);
/* Whether a job of the cell may take so many bytes more. */
bool cell_may_grow(const struct cell *cell, uint64_t size);
/* Like cell_may_grow(), but the submitter must also leave as many to others as it then has. */
bool cell_job_may_grow(const struct cell *cell, const struct job *job, uint64_t size);
/* Whether a payload of this size fits into an empty queue. */
bool cell_may_ever_fit(const struct cell *cell, uint64_t size);
/* Calls the next waiter: there will be no room here any more. Returns false if none waits. */
bool cell_turn_away_next(struct cell *cell);
/* Calls all waiters whose job does not fit any more after a change of the limits. */
void cell_turn_away_misfits(struct cell *cell);
/* Calls as many waiters as there is room for. */
void cell_call_waiters(struct cell *cell);

/* ---- cell-keep.c ---- */

extern const struct record CELL_KEPT_RECORD; /* what is kept for the next supervisor */

/* Opens what is kept of the cell for the next supervisor. */
void cell_open_kept(struct cell *cell);
/* Called after each change of what was asked of the cell. */
void cell_keep(struct cell *cell);
/* The cell was made because of the user. */
void cell_set_maker(struct cell *cell, uid_t uid);

/* ---- cell-idle.c ---- */

void cell_on_idle_timer(struct timer *timer, usec_t now);
/* Stops the slots of an idle cell; then its group frees it. */
void cell_retire(struct cell *cell);
/* Whether the actor has messages, names, timers or subscriptions, which it would lose. */
bool cell_actor_is_missed(const struct actor *actor);
