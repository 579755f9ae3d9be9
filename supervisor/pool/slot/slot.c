/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot/slot.h"

#include "shared/base/cleanup.h"
#include "supervisor/event/event-id.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor.h"
#include "supervisor/pool/slot/slot-private.h"
#include "supervisor/pool/slot/slot-template.h"
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void slot_tell(struct slot *slot, struct event event, const char *format, ...)
{
    va_list arguments;

    event.group = slot->pool->config->name;
    event.cell = pool_event_name(slot->pool);
    event.worker = slot->name;
    event.generation = slot->generation;
    va_start(arguments, format);
    event_tell(slot_context(slot)->events, event, slot->name, format, arguments);
    va_end(arguments);
}

void slot_arm(struct slot *slot, usec_t delay)
{
    timer_arm(slot_timers(slot), &slot->state_timer, usec_add(slot_now(slot), delay));
}

void slot_disarm(struct slot *slot)
{
    timer_disarm(slot_timers(slot), &slot->state_timer);
}

/* ---- what the census counts it as ---- */

/* Nothing waits for the first workers of keyed pools, which come and go with their jobs. */
static bool slot_is_undecided(const struct slot *slot)
{
    bool first = *slot->pool->key == '\0' &&
                 (slot->generation == slot->born ||
                  (slot->generation == slot->born + 1 && slot->state == LIFECYCLE_STARTING));

    return slot->plan != SLOT_OFF && first;
}

static bool slot_never_gets_ready(const struct slot *slot)
{
    return slot->state == LIFECYCLE_STARTING && slot->last_death &&
           slot->last_death->cause == DEATH_START_TIMEOUT;
}

static unsigned slot_traits(const struct slot *slot)
{
    const bool failed = slot->state == LIFECYCLE_FAILED, member = slot->role == SLOT_MEMBER;
    const bool stays = slot->index < slot->pool->size;
    const bool wanted = slot->plan != SLOT_OFF;
    const bool has[_CENSUS_N_TRAITS] = {
        [CENSUS_SLOT] = true,
        [CENSUS_DOWN] = slot_is_down(slot),
        [CENSUS_PLACE] = stays,
        [CENSUS_EMPTY] = stays && slot_is_down(slot),
        [CENSUS_FAILED] = failed,
        [CENSUS_TROUBLE] = failed || slot->state == LIFECYCLE_BACKOFF ||
                           slot_never_gets_ready(slot) || (stays && slot_is_failing(slot)),
        [CENSUS_MEMBER] = member && (stays || !slot_is_down(slot)),
        [CENSUS_UP] = member && slot_is_up(slot),
        [CENSUS_WANTED] = member && wanted,
        [CENSUS_UNWANTED] = member && !wanted && !slot->retired,
        [CENSUS_UNDECIDED] = member && slot_is_undecided(slot),
    };
    unsigned traits = 0;

    for (unsigned i = 0; i < _CENSUS_N_TRAITS; i++)
        traits |= (unsigned)has[i] << i;
    return traits;
}

static void slot_set_traits(struct slot *slot, unsigned traits)
{
    if (traits == slot->traits)
        return;
    census_move(&slot->pool->census, slot->traits, traits);
    slot->traits = traits;
    if (census_down(&slot->pool->census))
        slot->pool->handler->down(slot->pool);
}

void slot_count(struct slot *slot)
{
    slot_set_traits(slot, slot_traits(slot));
}

/* ---- actions of the life-cycle table ---- */

void slot_is_available(struct slot *slot)
{
    list_unlink(&slot->available_link); /* with Prefetch= it is listed while it has room */
    /* Last in, first out: this worker's memory is still in the caches. */
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
    slot_await_idle(slot);
}

void slot_join_pool(struct slot *slot)
{
    slot_begin_recycling(slot);
    slot_action_announce(slot);
    slot_review_actor(slot);
}

static void slot_tell_ready(struct slot *slot)
{
    if (slot->worker.adopted)
        slot_tell(slot, (struct event){.level = LOG_LEVEL_INFO, .type = "worker.adopted"},
                  "continues: taken over from the last supervisor");
    else
        slot_tell(slot,
                  (struct event){
                      .level = LOG_LEVEL_INFO,
                      .type = "worker.ready",
                      .message_id = slot->n_restarts > 0 ? EVENT_ID_WORKER_RESTARTED : NULL,
                  },
                  slot->role == SLOT_SPARE ? "is ready as a spare" : "is ready");
}

static void slot_on_ready(struct slot *slot)
{
    slot_disarm(slot);
    slot->worker.watchdog_seen = slot_now(slot);
    slot->worker.readiness = WORKER_CAME_UP;
    if (!slot->worker.adopted)
        slot->start_took[slot->worker.process.forked] =
            usec_sub(slot_now(slot), slot->worker.started_at);
    if (!slot_is_actor(slot))
        slot_arm_clock(slot);
    else
        slot->messages_measured = slot->actor->counters.consumed;
    slot_begin_recycling(slot);
    slot_health_watch(slot);
    slot_tell_ready(slot);
    slot->pool->slot_handler->ready(slot);
}

static void slot_action_cancel_restart(struct slot *slot)
{
    task_cancel(&slot->start);
    slot_disarm(slot);
    slot->restart_at = 0;
}

static void slot_action_reset(struct slot *slot)
{
    restart_reset(&slot->tally);
    slot_health_reset(slot);
}

static void slot_action_schedule(struct slot *slot)
{
    slot->pool->slot_handler->died(slot);
}

static void slot_action_down(struct slot *slot)
{
    slot_disarm(slot);
    slot_tell(slot, (struct event){.level = LOG_LEVEL_DEBUG, .type = "worker.stopped"},
              "is stopped");
    slot->pool->slot_handler->stopped(slot);
    if (slot->plan != SLOT_AGAIN || slot->retired)
        return;
    slot->plan = SLOT_OFF;
    slot_start(slot);
}

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
    bool of_job;

    if (next.actions == LIFECYCLE_IGNORED) {
        log_debug("%s: event %s is ignored while %s", slot->name, lifecycle_event_to_string(event),
                  lifecycle_state_to_string(slot->state));
        slot_count(slot);
        return;
    }
    /* Changes neither what the slot is counted as, nor whether it is up. */
    of_job = event == LIFECYCLE_EVENT_JOB_ASSIGNED || event == LIFECYCLE_EVENT_JOB_ENDED;
    if (next.state != before) {
        slot_set_state(slot, next.state);
        slot->since_at = loop_realtime(slot_context(slot)->loop);
        if (!of_job)
            slot_count(slot); /* the actions look at the new state */
    }
    if (event == LIFECYCLE_EVENT_READY && before == LIFECYCLE_STARTING)
        slot_on_ready(slot);
    for (unsigned left = next.actions; left != 0; left &= left - 1)
        ACTIONS[__builtin_ctz(left)](slot);
    if (of_job)
        return;
    slot_settle_notify(slot);
    slot_count(slot);
    slot_keep(slot);
    slot_review_actor(slot);
    slot_template_review(slot);
}

/* ---- timer and task ---- */

static void slot_on_state_timer(struct timer *timer, usec_t now)
{
    struct slot *slot = slot_of(timer, state_timer);
    const enum lifecycle_state state = slot->state;

    if (state == LIFECYCLE_BACKOFF) {
        slot->pool->slot_handler->restart_due(slot);
        return;
    }
    slot_catch_up(slot);
    const struct process *process = &slot->worker.process;
    if ((process->ended && !process->rest) || slot->state != state || timer_armed(timer))
        return; /* the worker was in time */
    if (state == LIFECYCLE_STARTING)
        slot_end_worker(slot, DEATH_START_TIMEOUT, LIFECYCLE_EVENT_START_TIMEOUT);
    else
        slot_event(slot, LIFECYCLE_EVENT_STOP_TIMEOUT);
}

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

/* ---- interface ---- */

int slot_new(struct slot **ret, struct pool *pool, unsigned index, bool twin)
{
    const size_t name_size = strlen(pool->name) + sizeof("/4294967295");
    struct slot *slot = calloc(1, sizeof(*slot) + name_size);
    int r;

    if (!slot)
        return -ENOMEM;
    (void)snprintf(slot->name, name_size, "%s/%u", pool->name, index);
    slot->pool = pool;
    slot->index = index;
    slot->twin = twin;
    r = slot_new_actor(slot);
    if (r < 0) {
        free(slot);
        return r;
    }
    slot->since_at = clock_realtime();
    slot->generation = slot->born = *pool->set->generations;
    slot->worker.job_deadline = USEC_INFINITY;
    slot->worker.notify = (struct notify_server)NOTIFY_SERVER_NULL;
    slot->notify_user = (uid_t)-1;
    list_init(&slot->available_link);
    list_init(&slot->replace_link);
    list_init(&slot->review_link);
    list_init(&slot->jobs);
    task_init(&slot->start, &pool->context->process->spawner.starts, slot_on_turn);
    timer_init(&slot->state_timer, slot_on_state_timer);
    timer_init(&slot->clock, slot_on_clock);
    timer_init(&slot->age_timer, slot_on_age);
    timer_init(&slot->reclaim_timer, slot_on_idle);
    slot_trace_init(slot);
    slot_open_kept(slot);
    process_init(&slot->worker.process, pool->context->process,
                 &(struct process_subject){.group = pool->set->name,
                                           .worker = slot->name,
                                           .key = pool->key,
                                           .log = &pool->set->output,
                                           .calls = &pool->set->calls},
                 kept_state_output(&pool->context->process->kept, slot->kept));
    slot->worker.process.output.owner = pool->set->blobs ? pool->set->blobs->owner : 0;
    slot_keep_calls(slot);
    process_take_config(&slot->worker.process, pool->config);
    slot_health_init(slot);
    slot_count(slot);
    slot_counts(slot)->n_in_state[slot->state]++;
    *ret = slot;
    return 0;
}

struct slot *slot_free(struct slot *slot)
{
    if (!slot)
        return NULL;
    assert(slot_is_down(slot));
    assert(!slot->standby);
    slot_set_traits(slot, 0);
    slot_counts(slot)->n_in_state[slot->state]--;
    pool_set_note_generation(slot->pool->set, slot->generation);
    pool_set_note_generation(slot->pool->set, slot->tried);
    if (slot->actor)
        actor_end(slot->actor, "its place in the pool is gone");
    slot->actor = NULL;
    slot_disarm(slot);
    task_cancel(&slot->start);
    slot_trace_reset(slot);
    timer_disarm(slot_timers(slot), &slot->clock);
    timer_disarm(slot_timers(slot), &slot->age_timer);
    timer_disarm(slot_timers(slot), &slot->reclaim_timer);
    timer_disarm(slot_timers(slot), &slot->health.timer);
    restart_reset(&slot->tally);
    list_unlink(&slot->replace_link);
    list_unlink(&slot->review_link);
    list_unlink(&slot->available_link);
    notify_server_deinit(&slot->worker.notify);
    slot->template = slot_template_free(slot->template);
    process_deinit(&slot->worker.process);
    kept_state_free(&slot_context(slot)->process->kept, slot->kept);
    death_unref(slot->last_death);
    free(slot->status_text);
    free(slot);
    return NULL;
}

void slot_start(struct slot *slot)
{
    if (slot->retired || slot->pool->config->fault)
        return;
    slot->plan = slot->state == LIFECYCLE_STOPPING || slot->state == LIFECYCLE_KILLING ? SLOT_AGAIN
                                                                                       : SLOT_ON;
    slot_count(slot);
    if (slot->plan == SLOT_ON)
        slot_start_in_turn(slot);
    slot_keep(slot);
}

void slot_reset(struct slot *slot)
{
    if (slot->retired)
        return;
    if (slot->state == LIFECYCLE_FAILED)
        slot->plan = SLOT_ON;
    if (slot->standby && slot->standby->role == SLOT_SPARE)
        slot_event(slot->standby, LIFECYCLE_EVENT_RESET);
    slot_event(slot, LIFECYCLE_EVENT_RESET);
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
