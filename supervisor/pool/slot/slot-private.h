/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between slot-*.c:
 *
 *   slot.c               carries out what the life-cycle table says; the stop ladder
 *   slot-start.c         from a decision to a process
 *   slot-records.c       what the worker says
 *   slot-jobs.c          jobs in hand
 *   slot-timeouts.c      a job's time, WatchdogSec=, MaxMemory= of workers that handle messages
 *   slot-recycle.c       when a worker has done enough
 *   slot-lifeline.c      the first sign of a death, before the process has ended
 *   slot-actor.c         messages
 *   slot-traits.c        what the slot is counted as
 *   slot-health.c        whether its workers do what they are there for
 *   slot-command.c       the death of a process that the worker ran for a job
 *   slot-death.c         the worker's end, and what becomes of its jobs
 *   slot-death-report.c  the report of a death
 */

#include "shared/base/log.h"
#include "supervisor/config/config.h"
#include "supervisor/job/job.h"
#include "supervisor/loop/loop.h"
#include "supervisor/pool/pool.h"
#include "supervisor/pool/slot/slot.h"

/* There is something for pool_step() or the pool's owner to do at the end of this turn. */
static inline void pool_wake(struct pool *pool)
{
    pool->handler->wake(pool);
}

static inline struct timer_queue *pool_timers(const struct pool *pool)
{
    return loop_timers(pool->context->loop);
}

static inline const struct pool_context *slot_context(const struct slot *slot)
{
    return slot->pool->context;
}

static inline struct timer_queue *slot_timers(const struct slot *slot)
{
    return pool_timers(slot->pool);
}

/* The beginning of this turn, monotonic. */
static inline usec_t slot_now(const struct slot *slot)
{
    return loop_now(slot_context(slot)->loop);
}

/* Its group is not one of services. */
static inline bool slot_is_actor(const struct slot *slot)
{
    return slot->pool->config->type == CONFIG_ACTOR;
}

/* An event of this slot; the message is the slot's name and `text`. */
void slot_tell(struct slot *slot, enum log_level level, const char *type, const char *message_id,
               struct death *death, const char *text);

/* The tally of deaths that its restarts go by: the pool's if its workers die together. */
static inline struct restart_tally *slot_tally(struct slot *slot)
{
    return slot->pool->config->strategy == CONFIG_ONE_FOR_ONE ? &slot->tally : &slot->pool->tally;
}

/* The ladder's timer. */
void slot_arm(struct slot *slot, usec_t delay);
void slot_disarm(struct slot *slot);

/* Looks it up in the table and does what that says. */
void slot_event(struct slot *slot, enum lifecycle_event event);

/* Remembers why the worker is to go; the first verdict stands. */
void slot_terminate(struct slot *slot, enum death_cause cause);

/* Has it started, or started again, as soon as its turn among all comes. */
void slot_start_in_turn(struct slot *slot);

/* It can take a job: the next one it gets, since it was the last to work. */
void slot_is_available(struct slot *slot);

/* It is up, and has a place from now on that is not its own from the beginning. */
void slot_join_pool(struct slot *slot);

/* ---- slot-traits.c ---- */

/* After every change of its state, of its role, and of whether it is wanted, retired, held or
 * undecided. */
void slot_count(struct slot *slot);
/* It goes away. */
void slot_uncount(struct slot *slot);

/* ---- slot-start.c ---- */

void slot_action_spawn(struct slot *slot);
void slot_close_endpoint(struct slot *slot);

/* ---- slot-death.c ---- */

void slot_action_reap(struct slot *slot);

/* ---- slot-death-report.c ---- */

/* A report of what is known of the job in hand; the caller adds who died of what. One reference,
 * the caller's. NULL when out of memory. */
struct death *slot_new_report(struct slot *slot);
/* Keeps the report and tells everybody. */
void slot_publish_report(struct slot *slot, struct death *death);

/* ---- slot-command.c ---- */

/* PROTOCOL_CRASHED. 0 or -EBADMSG. */
int slot_on_crashed(struct slot *slot, const struct ring_record *record);

/* ---- slot-health.c ---- */

/* Its worker has done some work. */
static inline void slot_health_worked(struct slot *slot)
{
    if (slot->health.n_failures > 0)
        slot_health_recover(slot);
}

/* ---- slot-recycle.c ---- */

/* MaxJobs=1 is a promise: one process for each job. */
static inline bool slot_is_for_one_job(const struct slot *slot)
{
    return slot->pool->config->max_jobs == 1;
}

/* Whether it may be handed one more job: Prefetch=, and with MaxJobs=1 never a second one. */
static inline bool slot_may_take_job(const struct slot *slot)
{
    if (slot_is_for_one_job(slot))
        return slot->n_jobs == 0 && slot->worker.jobs_done == 0;
    return slot->n_jobs < slot->pool->config->prefetch;
}

/* It has done a job, or messages: whether that was enough. */
void slot_after_work(struct slot *slot);
void slot_arm_age(struct slot *slot);
void slot_on_age(struct timer *timer, usec_t now);

/* ---- slot-lifeline.c ---- */

/* The worker is ready: has its end noticed as early as it can be. */
void slot_watch_owner(struct slot *slot);

/* ---- slot-actor.c ---- */

int slot_new_actor(struct slot *slot); /* 0 or -ENOMEM */
void slot_free_actor(struct slot *slot);
/* After each event: whether messages may be handed over, and whether its watchers are told. */
void slot_review_actor(struct slot *slot);
/* What the worker took last, for its report. */
void slot_report_messages(struct slot *slot, struct death *death);
/* Its worker is dead: messages wait for the next one, which may be a successor in its place. */
void slot_recover_messages(struct slot *slot, struct death *death);

/* ---- slot-records.c ---- */

/* The job that a record means; NULL if the slot does not have it in hand in this attempt. */
struct job *slot_job_in_hand(struct slot *slot, uint64_t handle, uint32_t attempt);

/* An actor's worker is up. */
void slot_is_ready(struct slot *slot);

/* The handler of every actor's mailbox. */
extern const struct endpoint_handler SLOT_ENDPOINT;

/* ---- slot-jobs.c ---- */

/* Jobs are done in the order in which they are handed over. */
static inline struct job *slot_job_at_work(const struct slot *slot)
{
    return list_entry(list_first(&slot->jobs), struct job, link);
}

/* The stop message. 0, ENDPOINT_E_FULL, or -errno. */
int slot_send_stop(struct slot *slot);

/* Gives every job in hand back to the pool's owner as lost with this death. */
void slot_lose_jobs(struct slot *slot, const struct death *death);

/* ---- slot-timeouts.c ---- */

void slot_on_clock(struct timer *timer, usec_t now);
/* For what is in hand now, if it is not armed for an earlier time. */
void slot_arm_clock(struct slot *slot);
/* The worker is to begin this job now. */
void slot_clock_job(struct slot *slot, const struct job *job);
/* It has begun it: the job's time begins. Only where there is one: job_deadline. */
void slot_clock_started(struct slot *slot, const struct job *job);
/* Reads all that its worker has said by now, before the worker is judged by the time. */
void slot_catch_up(struct slot *slot);
/* After each event, and with another configuration: whether messages are looked after at all. */
void slot_review_clock(struct slot *slot);
