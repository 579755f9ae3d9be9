/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of slot/; also used by pool-*.c. */

#include "shared/base/log.h"
#include "supervisor/config/config.h"
#include "supervisor/event/event.h"
#include "supervisor/job/job.h"
#include "supervisor/loop/loop.h"
#include "supervisor/pool/pool.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/store/durable-job.h"
#include <string.h>

#define slot_of(pointer, member) list_entry(pointer, struct slot, member)

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

static inline struct pool_tally *slot_counts(const struct slot *slot)
{
    return &slot->pool->set->tally;
}

static inline void slot_set_state(struct slot *slot, enum lifecycle_state state)
{
    slot_counts(slot)->n_in_state[slot->state]--;
    slot_counts(slot)->n_in_state[state]++;
    slot->state = state;
}

static inline void slot_count_restart(struct slot *slot)
{
    slot->n_restarts++;
    slot_counts(slot)->n_restarts++;
}

/* False for services. */
static inline bool slot_is_actor(const struct slot *slot)
{
    return slot->pool->config->type == CONFIG_ACTOR;
}

/* The oldest job in hand: jobs are done in the order in which they are assigned. */
static inline struct job *slot_job_at_work(const struct slot *slot)
{
    return list_first_entry(&slot->jobs, struct job, link);
}

/* Updates the census; called after every change of what slot_traits() reads. */
void slot_count(struct slot *slot);

/* Emits an event of this slot; the message is the slot's name and the formatted text. */
void slot_tell(struct slot *slot, struct event event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define SLOT_TEXT_MAX 128

/* Looks the event up in the life-cycle table and carries out its actions. */
void slot_event(struct slot *slot, enum lifecycle_event event);

void slot_arm(struct slot *slot, usec_t delay); /* state_timer */
void slot_disarm(struct slot *slot);

/* Queues the start or restart for the spawner. */
void slot_start_in_turn(struct slot *slot);

/* Lists the slot as available; it is the next one to get a job. */
void slot_is_available(struct slot *slot);

/* The worker, which is up, has taken over another one's place. */
void slot_join_pool(struct slot *slot);

/* ---- slot-stop.c ---- */

/* Notes why the worker ends; a cause other than a stop stands. */
void slot_set_kill_reason(struct slot *slot, enum death_cause cause);
/* Like slot_set_kill_reason(), but then also feeds the event to the life cycle. */
void slot_end_worker(struct slot *slot, enum death_cause cause, enum lifecycle_event event);

void slot_action_send_stop(struct slot *slot);
void slot_action_terminate(struct slot *slot);
void slot_action_abort(struct slot *slot);
void slot_action_kill(struct slot *slot);

/* ---- slot-keep.c ---- */

/* Whether the slot's worker has outlived the last supervisor. */
bool slot_has_held(const struct slot *slot);
/* Whether the last supervisor had another worker for this place. */
bool slot_has_held_standby(const struct slot *place);
/* Notes the configuration that its process is started with. */
void slot_keep_config(struct slot *slot);
/* Whether its process, which the last supervisor started, was started by another configuration. */
bool slot_is_behind(const struct slot *slot);
/* Whether the configuration is still the one that its last process was started with. */
bool slot_has_kept_config(const struct slot *slot);
/* Returns the role that a slot that `resumes` had. */
enum slot_role slot_kept_role(const struct slot *slot);
/* Opens what is kept of the slot for the next supervisor. */
void slot_open_kept(struct slot *slot);
/* Keeps the forbidden call of its process that is being handled. */
void slot_keep_calls(struct slot *slot);
/* Sets status_text, also for the next supervisor; "" = none. */
void slot_set_status(struct slot *slot, const char *text);
/* The program runs: the process outlives the supervisor from now on. */
void slot_hold(struct slot *slot);

/* ---- slot-notify.c ---- */

/* Opens or continues the notify socket for a new process. Messages wait until the process is known,
 * since their senders are checked. Returns 0 or -errno. */
int slot_open_notify(struct slot *slot);
/* Takes over the last supervisor's notify socket on success. Returns 0 or -errno. */
int slot_adopt_notify(struct slot *slot, int fd);
/* The service is dead: keeps its notify socket, unread, for the next process. */
void slot_rest_notify(struct slot *slot);
/* Called after each event: closes that socket unless the next process starts immediately. */
void slot_settle_notify(struct slot *slot);

/* ---- slot-start.c ---- */

extern const struct process_handler SLOT_PROCESS;

/* Forgets the last worker. */
void slot_begin_worker(struct slot *slot);
void slot_action_spawn(struct slot *slot);
/* Makes the channel of the worker that will follow, while this one's process dies. */
void slot_prepare_successor(const struct slot *slot);
struct submit_socket_options slot_submit_options(struct slot *slot);
/* Closes all that only the worker used. */
void slot_close_endpoint(struct slot *slot);

/* ---- slot-death.c ---- */

void slot_action_reap(struct slot *slot);
/* Handles PROTOCOL_CRASHED. Returns 0 or -EBADMSG. */
int slot_on_crashed(struct slot *slot, const struct ring_record *record);

/* Returns a report of a process that the worker runs and that is about to die of this; the caller
 * owns one reference. NULL when out of memory. */
struct death *slot_report_crash(struct slot *slot, const struct watch_crash *crash);
/* Keeps the report and emits its event. */
void slot_publish_report(struct slot *slot, struct death *death);

/* ---- slot-health.c ---- */

/* The worker has done some work. */
static inline void slot_health_worked(struct slot *slot)
{
    if (slot->health.n_failures > 0)
        slot_health_recover(slot);
}

/* ---- slot-recycle.c ---- */

/* MaxJobs=1 promises one process for each job. */
static inline bool slot_is_for_one_job(const struct slot *slot)
{
    return slot->pool->config->max_jobs == 1;
}

/* Whether Prefetch= and MaxJobs= allow one more job. */
static inline bool slot_may_take_job(const struct slot *slot)
{
    if (slot_is_for_one_job(slot))
        return slot->n_jobs == 0 && slot->worker.jobs_done == 0;
    return slot->n_jobs < slot->pool->config->prefetch;
}

/* The worker has done a job or messages: replaces it if that was enough. */
void slot_after_work(struct slot *slot);
void slot_arm_age(struct slot *slot);
void slot_on_age(struct timer *timer, usec_t now);
/* The worker is up, or gets a job: its memory is reclaimed when it has been idle. */
void slot_await_idle(struct slot *slot);
void slot_on_idle(struct timer *timer, usec_t now);
/* The configuration changed: MaxAgeSec=, WatchdogSec=, MaxMemory=, MaxJobs=. */
void slot_take_config(struct slot *slot);

/* ---- slot-lifeline.c ---- */

/* Watches the ready worker's lifeline, which shows a death early. */
void slot_watch_owner(struct slot *slot);
/* If the lifeline is marked: notes whether the kernel did that, as the worker dies, or the worker
 * itself. Call it before the worker is killed: afterwards this cannot be told. */
void slot_judge_lost(struct slot *slot);
/* Its end is proven: the loop need not stay awake for that. */
void slot_prove_lost(struct slot *slot);

/* ---- slot-actor.c ---- */

int slot_new_actor(struct slot *slot); /* returns 0 or -ENOMEM */
/* Called after each event: updates whether messages are delivered, and notifies monitors. */
void slot_review_actor(struct slot *slot);
/* Adds the messages that the worker was handling to its report. */
void slot_report_messages(struct slot *slot, struct death *death);
/* The worker is dead: keeps its messages for the next one. */
void slot_recover_messages(struct slot *slot, struct death *death);
/* Gives the place's actor to the successor, and its standby to `old`. */
void slot_swap_actors(struct slot *old, struct slot *successor);

/* ---- slot-records.c ---- */

/* Returns the job that a record names, or NULL if the slot does not have it in this attempt. */
struct job *slot_job_in_hand(struct slot *slot, uint64_t handle, uint32_t attempt);
/* An actor's worker is up, and its process is known. */
void slot_is_ready(struct slot *slot);

extern const struct endpoint_handler SLOT_ENDPOINT;

/* ---- slot-jobs.c ---- */

/* The page of a job in hand, which the next supervisor finds. */
static inline struct job_page *slot_page(const struct slot *slot, const struct job *job)
{
    struct memory_header *header = slot->worker.endpoint.channel.mine.header;

    return (struct job_page *)(void *)header->jobs[job->hand].kept;
}
/* The facts of a job in hand have changed. */
static inline void slot_hand_update(const struct slot *slot, const struct job *job)
{
    if (slot->worker.endpoint.channel.mine.header)
        slot_page(slot, job)->facts = job->facts;
}
/* The worker has begun the job. Like slot_hand_update(), but writes only what changes with that. */
static inline void slot_hand_begin(const struct slot *slot, const struct job *job)
{
    struct job_page *page;

    if (!slot->worker.endpoint.channel.mine.header)
        return;
    page = slot_page(slot, job);
    page->started_at = job->started_at;
    page->state_sequence = job->state_sequence;
    page->n_unbegun = job->n_unbegun;
    page->started = job->started;
}
/* Takes the job out of the worker's hand. */
void slot_let_go(struct slot *slot, struct job *job);
/* Takes back the jobs of an adopted worker, oldest first. */
void slot_hand_resume(struct slot *slot);
/* Reports the jobs in this inbox, which the last supervisor has left, as missed: its worker is not
 * adopted. */
void slot_hand_lose(const struct slot *slot, int inbox);
/* Whether a job waits for room in the worker's inbox. */
bool slot_job_waits(const struct slot *slot);
/* Sends the stop message. Returns 0, ENDPOINT_E_FULL, or -errno. */
int slot_send_stop(struct slot *slot);
/* The adopted worker, which is up, has jobs in hand: their time continues. */
void slot_resume_jobs(struct slot *slot);
/* The worker is dead: keeps the end of its oldest job's attempt for the next supervisor. */
void slot_keep_attempt(struct slot *slot, const struct death *death);
/* Returns every job in hand to the pool's owner: as lost by this death, or as never begun. */
void slot_lose_jobs(struct slot *slot, const struct death *death);

/* ---- slot-timeouts.c ---- */

void slot_on_clock(struct timer *timer, usec_t now);
/* Arms the clock for the next time-out of the work in hand, unless it fires before that. */
void slot_arm_clock(struct slot *slot);
/* The worker begins this job next: its time begins. */
void slot_clock_job(struct slot *slot, const struct job *job);
/* The job at work has to end by then: monotonic. */
void slot_limit_job(struct slot *slot, usec_t at);
/* The worker has begun the job, which has a time-out: its time begins again. */
void slot_clock_started(struct slot *slot, const struct job *job);
/* The inbox, which was empty, has messages. */
void slot_clock_messages(struct slot *slot);
/* Called after each event and each change of the configuration. */
void slot_review_clock(struct slot *slot);
/* Reads what the worker has written, before a time-out is held against it. */
void slot_catch_up(struct slot *slot);
