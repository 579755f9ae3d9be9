/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot/slot.h"
#include "supervisor/event/event.h"
#include "supervisor/job/job.h"
#include "supervisor/message/actor.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/event/event-id.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/pool/slot/slot-private.h"
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define slot_of(pointer, member) list_entry(pointer, struct slot, member)

void slot_tell(struct slot *slot, enum log_level level, const char *type, const char *message_id,
               struct death *death, const char *text)
{
    char message[768];

    (void)snprintf(message, sizeof(message), "%s %s", slot->name, text);
    event_emit(slot_context(slot)->events, (struct event){
                                               .level = level,
                                               .type = type,
                                               .group = slot->pool->config->name,
                                               .cell = pool_event_name(slot->pool),
                                               .worker = slot->name,
                                               .generation = slot->generation,
                                               .job = death && death->job[0] ? death->job : NULL,
                                               .message_id = message_id,
                                               .message = message,
                                               .quotes = death && death->command[0] != '\0',
                                               .death = death,
                                           });
}

/* ---- start ---- */

void slot_arm(struct slot *slot, usec_t delay)
{
    /* An arm that fails for want of memory would be a hang: the heap grows by doubling and rarely.
     */
    if (timer_arm(slot_timers(slot), &slot->ladder_timer, usec_add(slot_now(slot), delay)) < 0)
        limited_log_write(slot_context(slot)->log, slot->pool->config->name, LOG_LEVEL_ERROR,
                          "%s: out of memory arming a timer", slot->name);
}

void slot_disarm(struct slot *slot)
{
    timer_disarm(slot_timers(slot), &slot->ladder_timer);
}

/* ---- life ---- */

void slot_is_available(struct slot *slot)
{
    /* With Prefetch= it was there all the time, having room. */
    list_unlink(&slot->available_link);
    /* Last in, first out: the worker whose memory is still in the caches. */
    list_push_front(&slot->pool->available, &slot->available_link);
    pool_wake(slot->pool);
}

static void slot_action_announce(struct slot *slot)
{
    if (slot_is_actor(slot) && !slot->worker.process.ended && slot->role != SLOT_SPARE)
        slot_is_available(slot);
}

static void slot_action_withdraw(struct slot *slot)
{
    list_unlink(&slot->available_link);
}

static void slot_begin_recycling(struct slot *slot)
{
    recycle_begin(&slot->recycle, slot_now(slot), slot_context(slot)->random);
    slot_arm_age(slot);
}

void slot_join_pool(struct slot *slot)
{
    slot_begin_recycling(slot);
    slot_action_announce(slot);
    slot_review_actor(slot);
}

static void slot_on_ready(struct slot *slot)
{
    slot_disarm(slot);
    slot->worker.watchdog_seen = slot_now(slot);
    slot->worker.came_up = true;
    slot->undecided = false;
    if (!slot_is_actor(slot))
        slot_arm_clock(slot);
    else
        slot->messages_measured = slot->actor->counters.consumed;
    slot_begin_recycling(slot);
    slot_health_watch(slot);
    slot_tell(slot, LOG_LEVEL_INFO, "worker.ready",
              slot->n_restarts > 0 ? EVENT_ID_WORKER_RESTARTED : NULL, NULL,
              slot->role == SLOT_SPARE ? "is ready as a spare" : "is ready");
    slot->pool->slot_handler->ready(slot);
}

/* ---- stop ladder ---- */

/* Half of TimeoutStopSec= for each of the two rungs after a stop was asked, the whole after a
 * verdict. */
static usec_t slot_rung(const struct slot *slot)
{
    usec_t whole = slot->pool->config->timeout_stop;

    bool two = slot_is_actor(slot) && slot->worker.kill_reason == DEATH_STOP;

    return two && whole != USEC_INFINITY ? whole / 2 : whole;
}

void slot_terminate(struct slot *slot, enum death_cause cause)
{
    if (slot->worker.kill_reason == DEATH_EXIT || slot->worker.kill_reason == DEATH_STOP)
        slot->worker.kill_reason = cause;
}

static void slot_action_kill(struct slot *slot)
{
    process_kill_all(&slot->worker.process);
}

static void slot_action_terminate(struct slot *slot)
{
    if (slot->worker.signalled) {
        slot_action_kill(slot);
        return;
    }
    slot->worker.signalled = true;
    process_signal(&slot->worker.process, slot->pool->config->kill_signal);
    slot_arm(slot, slot_rung(slot));
}

static void slot_action_abort(struct slot *slot)
{
    slot->worker.signalled = true;
    process_signal(&slot->worker.process, SIGABRT);
    slot_arm(slot, slot_rung(slot));
}

static void slot_action_send_stop(struct slot *slot)
{
    if (slot_is_actor(slot) && slot_send_stop(slot) == 0)
        slot_arm(slot, slot_rung(slot));
    else
        slot_action_terminate(slot);
}

static void slot_on_ladder_timer(struct timer *timer, usec_t now)
{
    struct slot *slot = slot_of(timer, ladder_timer);
    const enum lifecycle_state state = slot->state;

    (void)now;
    if (state == LIFECYCLE_BACKOFF) {
        slot->pool->slot_handler->restart_due(slot);
        return;
    }
    slot_catch_up(slot);
    if (slot->worker.process.ended || slot->state != state || timer_armed(timer))
        return; /* it did in time what it was to do */
    if (state == LIFECYCLE_STARTING) {
        slot_terminate(slot, DEATH_START_TIMEOUT);
        slot_event(slot, LIFECYCLE_EVENT_START_TIMEOUT);
    } else {
        slot_event(slot, LIFECYCLE_EVENT_STOP_TIMEOUT);
    }
}

static void slot_action_cancel_restart(struct slot *slot)
{
    task_cancel(&slot->start);
    slot_disarm(slot);
    slot->restart_at = 0;
}

static void slot_action_reset(struct slot *slot)
{
    restart_reset(slot_tally(slot));
    slot_health_reset(slot);
}

static void slot_action_schedule(struct slot *slot)
{
    slot->undecided = false;
    slot->pool->slot_handler->died(slot);
}

static void slot_action_down(struct slot *slot)
{
    slot_disarm(slot);
    slot_tell(slot, LOG_LEVEL_DEBUG, "worker.stopped", NULL, NULL, "is stopped");
    slot->pool->slot_handler->stopped(slot);
    if (!slot->restart_asked || slot->retired)
        return;
    slot->restart_asked = false;
    slot_start(slot);
}

/* ---- the table's will ---- */

#define ACTION(name) [__builtin_ctz(LIFECYCLE_ACTION_##name)]

static void (*const ACTIONS[])(struct slot *) = {
    ACTION(ANNOUNCE) = slot_action_announce,   ACTION(WITHDRAW) = slot_action_withdraw,
    ACTION(SEND_STOP) = slot_action_send_stop, ACTION(TERMINATE) = slot_action_terminate,
    ACTION(ABORT) = slot_action_abort,         ACTION(KILL) = slot_action_kill,
    ACTION(REAP) = slot_action_reap,           ACTION(CANCEL_RESTART) = slot_action_cancel_restart,
    ACTION(RESET) = slot_action_reset,         ACTION(SCHEDULE) = slot_action_schedule,
    ACTION(SPAWN) = slot_action_spawn,         ACTION(DOWN) = slot_action_down,
};
_Static_assert(1u << (ELEMENTS(ACTIONS) - 1) == LIFECYCLE_ACTION_DOWN, "one function per action");

void slot_event(struct slot *slot, enum lifecycle_event event)
{
    const struct lifecycle_transition next = lifecycle_next(slot->state, event);
    enum lifecycle_state before = slot->state;
    bool counts;

    if (next.actions == LIFECYCLE_IGNORED) {
        log_debug("%s: %s means nothing while %s", slot->name, lifecycle_event_to_string(event),
                  lifecycle_state_to_string(slot->state));
        slot_count(slot);
        return;
    }
    /* Jobs come and go without a difference to anybody who counts. */
    counts = event != LIFECYCLE_EVENT_JOB_ASSIGNED && event != LIFECYCLE_EVENT_JOB_ENDED;
    if (next.state != before) {
        slot->state = next.state;
        slot->since_at = loop_realtime(slot_context(slot)->loop);
        if (counts)
            slot_count(slot); /* whoever is told in the middle of it looks at the new state */
    }
    if (event == LIFECYCLE_EVENT_READY && before == LIFECYCLE_STARTING)
        slot_on_ready(slot);
    for (unsigned left = next.actions; left != 0; left &= left - 1)
        ACTIONS[__builtin_ctz(left)](slot);
    if (counts)
        slot_count(slot);
    slot_review_actor(slot);
}

/* ---- start ---- */

static void slot_on_turn(struct task *task)
{
    struct slot *slot = slot_of(task, start);

    slot_event(slot, slot->state == LIFECYCLE_BACKOFF ? LIFECYCLE_EVENT_RESTART_OVER
                                                      : LIFECYCLE_EVENT_START);
}

void slot_start_in_turn(struct slot *slot)
{
    task_queue(&slot->start);
}

/* ---- outside ---- */

int slot_new(struct slot **ret, struct pool *pool, unsigned index)
{
    struct slot *slot = calloc(1, sizeof(*slot));
    int r;

    if (!slot)
        return -ENOMEM;
    slot->pool = pool;
    slot->index = index;
    (void)snprintf(slot->name, sizeof(slot->name), "%s/%u", pool->name, index);
    r = slot_new_actor(slot);
    if (r < 0) {
        free(slot);
        return r;
    }
    slot->since_at = clock_realtime();
    slot->generation = slot->born = pool->set->generations;
    slot->worker.job_deadline = USEC_INFINITY;
    slot->worker.notify = (struct notify_server)NOTIFY_SERVER_NULL;
    list_init(&slot->available_link);
    list_init(&slot->replace_link);
    list_init(&slot->review_link);
    list_init(&slot->jobs);
    task_init(&slot->start, &pool->context->process->spawner.starts, slot_on_turn);
    timer_init(&slot->ladder_timer, slot_on_ladder_timer);
    timer_init(&slot->clock, slot_on_clock);
    timer_init(&slot->age_timer, slot_on_age);
    process_init(&slot->worker.process, pool->context->process, pool->config->name, slot->name);
    slot_health_init(slot);
    slot_count(slot);
    *ret = slot;
    return 0;
}

/* Nobody of that name gets one as low again. */
static void slot_note_generation(const struct slot *slot)
{
    struct pool_set *set = slot->pool->set;

    if (set->generations < slot->generation)
        set->generations = slot->generation;
    if (set->generations < slot->tried)
        set->generations = slot->tried;
}

struct slot *slot_free(struct slot *slot)
{
    if (!slot)
        return NULL;
    assert(slot_is_down(slot));
    assert(!slot->standby);
    slot_uncount(slot);
    slot_note_generation(slot);
    slot_free_actor(slot);
    slot_disarm(slot);
    task_cancel(&slot->start);
    timer_disarm(slot_timers(slot), &slot->clock);
    timer_disarm(slot_timers(slot), &slot->age_timer);
    slot_health_deinit(slot);
    restart_reset(&slot->tally);
    list_unlink(&slot->replace_link);
    list_unlink(&slot->review_link);
    list_unlink(&slot->available_link);
    notify_server_deinit(&slot->worker.notify);
    process_deinit(&slot->worker.process);
    death_unref(slot->last_death);
    free(slot);
    return NULL;
}

void slot_start(struct slot *slot)
{
    if (slot->retired || slot->pool->config->fault)
        return;
    slot->wanted = true;
    slot_count(slot);
    if (slot->state == LIFECYCLE_STOPPING || slot->state == LIFECYCLE_KILLING)
        slot->restart_asked = true;
    else
        slot_start_in_turn(slot);
}

void slot_stop(struct slot *slot, bool hurry)
{
    slot->wanted = false;
    slot->restart_asked = false;
    task_cancel(&slot->start);
    slot->pool->slot_handler->stopping(slot, hurry);
    slot_terminate(slot, DEATH_STOP);
    slot_event(slot, LIFECYCLE_EVENT_STOP);
    if (hurry && slot->state == LIFECYCLE_STOPPING && !timer_armed(&slot->ladder_timer))
        slot_arm(slot, slot_rung(slot));
}

void slot_stop_within(struct slot *slot, usec_t time)
{
    const struct timer *ladder = &slot->ladder_timer;
    bool due_before = timer_armed(ladder) && ladder->at <= usec_add(slot_now(slot), time);

    if (slot->state == LIFECYCLE_STOPPING && slot->n_jobs > 0 && !due_before)
        slot_arm(slot, time);
}

void slot_restart(struct slot *slot)
{
    if (slot->retired)
        return;
    if (slot_is_down(slot) || slot->state == LIFECYCLE_BACKOFF) {
        slot_reset(slot);
        slot_start(slot);
        return;
    }
    slot_stop(slot, false);
    slot->restart_asked = true;
    slot_count(slot);
}

void slot_reset(struct slot *slot)
{
    if (slot->retired)
        return;
    slot->wanted = slot->wanted || slot->state == LIFECYCLE_FAILED;
    if (slot->standby && slot->standby->role == SLOT_SPARE)
        slot_event(slot->standby, LIFECYCLE_EVENT_RESET);
    slot_event(slot, LIFECYCLE_EVENT_RESET);
}

bool slot_kill(struct slot *slot, enum death_cause cause)
{
    if (slot_is_down(slot) || slot->state == LIFECYCLE_KILLING || slot->state == LIFECYCLE_BACKOFF)
        return false;
    slot->pool->slot_handler->killed(slot);
    slot_terminate(slot, cause);
    slot_event(slot, LIFECYCLE_EVENT_TERMINATED);
    return true;
}

void slot_notify(struct slot *slot, const struct notify_message *message)
{
    if (message->status)
        (void)capture_escape(slot->status_text, sizeof(slot->status_text), message->status,
                             strlen(message->status));
    if (message->watchdog)
        slot->worker.watchdog_seen = slot_now(slot);
    if (message->ready && slot->state == LIFECYCLE_STARTING)
        slot_event(slot, LIFECYCLE_EVENT_READY);
    if (message->watchdog_trigger) {
        slot_terminate(slot, DEATH_WATCHDOG);
        slot_event(slot, LIFECYCLE_EVENT_WATCHDOG);
    }
}

int slot_read_state(struct slot *slot, void *data, size_t *ret_size)
{
    *ret_size = 0;
    if (slot->worker.endpoint_open)
        return memory_state_read(&slot->worker.endpoint.channel.theirs, data, ret_size);
    if (!slot->last_death || slot->last_death->state_size == 0)
        return 0;
    *ret_size = slot->last_death->state_size;
    memcpy(data, slot->last_death->state, *ret_size);
    return 0;
}

bool slot_has_published(const struct slot *slot, const struct job *job)
{
    const struct memory_header *header;

    if (!slot->worker.endpoint_open || !job->started)
        return false;
    header = slot->worker.endpoint.channel.theirs.header;
    /* Pairs with the stores in memory_state_write(); what is read of the page is checked there. */
    return atomic_load_explicit(&header->state_sequence, memory_order_relaxed) !=
           job->state_sequence;
}

bool slot_is_up(const struct slot *slot)
{
    return slot->state == LIFECYCLE_IDLE || slot->state == LIFECYCLE_BUSY;
}

bool slot_is_down(const struct slot *slot)
{
    return slot->state == LIFECYCLE_STOPPED || slot->state == LIFECYCLE_FAILED;
}
