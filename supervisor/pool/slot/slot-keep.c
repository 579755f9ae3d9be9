/* SPDX-License-Identifier: MIT */

/* Keeps the state of a slot for the next supervisor, and continues from what the last one kept. */

#include "shared/base/fault.h"
#include "shared/base/utf8.h"
#include "supervisor/channel/endpoint-adopt.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-context.h"
#include "supervisor/pool/slot/slot-private.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/process/submit-socket.h"
#include "supervisor/succession/record.h"
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A slot's fields that outlive the supervisor. Zeroed means that it was never started. A flag is a
 * number, since a bool that was damaged would have no defined value. */
#define ROW slot_record
#define SLOT_FIELDS(F)                                                                             \
    F(MEMORY, generation, uint64_t, NUMBER(generation))                                            \
    F(MEMORY, born, uint64_t, NUMBER(born))                                                        \
    F(MEMORY, tried, uint64_t, NUMBER(tried))                                                      \
    F(MEMORY, since_at, usec_t, NUMBER(since_at))     /* realtime */                               \
    F(MEMORY, started_at, usec_t, NUMBER(started_at)) /* monotonic */                              \
    F(MEMORY, restart_at, usec_t, NUMBER(restart_at)) /* clock_steady() */                         \
    F(MEMORY, n_restarts, uint64_t, NUMBER(n_restarts))                                            \
    F(MEMORY, n_recycled, uint64_t, NUMBER(n_recycled))                                            \
    F(MEMORY, jobs_done, uint64_t, NUMBER(jobs_done)) /* by the worker, as of the last event */    \
    F(MEMORY, n_pauses, uint32_t, NUMBER(n_pauses))   /* struct restart_tally */                   \
    F(MEMORY, n_failures, uint32_t, NUMBER(n_failures))                                            \
    F(MEMORY, failing_since_at, usec_t, NUMBER(failing_since_at))                                  \
    F(MEMORY, state, uint8_t, BELOW(state, _LIFECYCLE_N_STATES - 1))                               \
    F(MEMORY, kill_reason, uint8_t, BELOW(kill_reason, _DEATH_N_CAUSES - 1))                       \
    F(MEMORY, known, uint8_t, NUMBER(known)) /* it has been started or stopped */                  \
    F(MEMORY, wanted, uint8_t, NUMBER(wanted))                                                     \
    F(MEMORY, came_up, uint8_t, NUMBER(came_up))                                                   \
    F(MEMORY, role, uint8_t, BELOW(role, SLOT_PREDECESSOR))                                        \
    F(MEMORY, retired, uint8_t, NUMBER(retired))                                                   \
    F(MEMORY, signalled, uint8_t, NUMBER(signalled))                                               \
    F(MEMORY, next_step_at, usec_t, NUMBER(next_step_at)) /* monotonic: of a stop; 0 = none */     \
    F(MEMORY, notifier, uint32_t, NUMBER(notifier))       /* struct slot.notify_user + 1 */        \
    F(MEMORY, status, typeof(char[SLOT_TEXT_MAX]), STRING(status))
struct slot_record {
    SLOT_FIELDS(MEMBER)
    struct seccomp_notif received; /* of struct call_listener */
};
_Static_assert(sizeof(struct slot_record) <= KEPT_DATA_MAX, "the record fits");

const struct record SLOT_RECORD = RECORD_OF("slot", SLOT_FIELDS(TYPED_FIELD));

static struct slot_record *record_of(const struct slot *slot)
{
    return slot->kept ? (struct slot_record *)(void *)slot->kept->data : NULL;
}

static usec_t next_step_of(const struct slot *slot)
{
    const struct timer *timer = &slot->state_timer;
    const bool ends = slot->state == LIFECYCLE_STOPPING || slot->state == LIFECYCLE_KILLING;

    return ends && timer_armed(timer) ? timer_at(timer) : 0;
}

void slot_keep(struct slot *slot)
{
    struct slot_record *record = record_of(slot);

    if (!record || slot->resumes)
        return; /* the record is still the last supervisor's */
    FAULT_POINT("slot.keep");
    record->known = true;
    record->generation = slot->generation;
    record->born = slot->born;
    record->tried = slot->tried;
    record->since_at = slot->since_at;
    record->started_at = slot->worker.started_at;
    record->restart_at = slot->restart_at;
    record->n_restarts = slot->n_restarts;
    record->n_recycled = slot->n_recycled;
    record->jobs_done = slot->worker.jobs_done;
    record->n_pauses = slot->tally.n_pauses;
    record->n_failures = slot->health.n_failures;
    record->failing_since_at = slot->health.since_at;
    record->state = (uint8_t)slot->state;
    record->kill_reason = (uint8_t)slot->worker.kill_reason;
    record->wanted = slot->plan != SLOT_OFF;
    record->retired = slot->retired && slot->role == SLOT_MEMBER;
    record->next_step_at = next_step_of(slot);
    record->came_up = slot->worker.readiness == WORKER_CAME_UP;
    record->role = (uint8_t)slot->role;
    record->signalled = slot->worker.signalled != SIGNALLED_NOT;
    record->notifier = slot->notify_user + 1;
}

void slot_take_last_death(struct slot *slot, struct death *death)
{
    if (slot->last_death)
        death_unref(death);
    else
        slot->last_death = death;
    slot_count(slot);
}

void slot_set_status(struct slot *slot, const char *text)
{
    struct slot_record *record = record_of(slot);

    free(slot->status_text);
    slot->status_text = *text != '\0' ? strdup(text) : NULL;
    text = slot->status_text ? slot->status_text : "";
    if (record)
        (void)utf8_escape(record->status, sizeof(record->status), text, strlen(text));
}

void slot_keep_config(struct slot *slot)
{
    if (slot->kept)
        slot->kept->started_with = slot->pool->config->process_digest;
}

bool slot_is_behind(const struct slot *slot)
{
    const uint32_t wanted = slot->pool->config->process_digest;
    const uint32_t given = slot->kept ? slot->kept->started_with : 0;

    return slot->worker.process.pid != 0 && given != 0 && wanted != 0 && given != wanted;
}

bool slot_has_kept_config(const struct slot *slot)
{
    return slot->kept && slot->kept->started_with != 0 &&
           slot->kept->started_with == slot->pool->config->process_digest;
}

static int hold_actor(struct slot *slot)
{
    int fds[ENDPOINT_HELD_FDS];
    size_t n = endpoint_held_fds(&slot->worker.endpoint, fds);

    return process_hold(&slot->worker.process, HOLDING_WORKER, slot->kept->name, fds, n);
}

static int hold(struct slot *slot)
{
    if (!slot->kept)
        return -ENOMEM;
    if (slot_is_actor(slot))
        return hold_actor(slot);
    return process_hold(&slot->worker.process, HOLDING_SERVICE, slot->kept->name,
                        &slot->worker.notify.fd, 1);
}

void slot_hold(struct slot *slot)
{
    int r = hold(slot);

    if (slot_is_actor(slot))
        endpoint_close_memories(&slot->worker.endpoint);
    if (r == 0 && slot->worker.submits)
        r = submit_socket_hold(slot->worker.submits, slot->kept->name);
    if (r < 0)
        log_warning("%s will not outlive a crash of the supervisor: %s", slot->name, strerror(-r));
}

/* ---- in the next supervisor ---- */

static void name_kept(char name[KEPT_NAME_MAX + 2], const struct slot *slot, bool twin)
{
    (void)snprintf(name, KEPT_NAME_MAX + 2, "%s%s", slot->name, twin ? "~" : "");
}

bool slot_has_held(const struct slot *slot)
{
    return slot->kept &&
           held_find(&slot_context(slot)->process->held, HOLDING_WORKER, slot->kept->name);
}

bool slot_has_held_standby(const struct slot *place)
{
    char name[KEPT_NAME_MAX + 2];

    name_kept(name, place, !place->twin);
    return held_find(&slot_context(place)->process->held, HOLDING_WORKER, name);
}

enum slot_role slot_kept_role(const struct slot *slot)
{
    const struct slot_record *record = record_of(slot);

    return slot->resumes ? (enum slot_role)record->role : SLOT_MEMBER;
}

/* If the record of a slot is damaged, its worker is taken over as if nothing had been asked of it.
 */
static void check_record(const struct slot *slot)
{
    struct slot_record *record = record_of(slot);

    if (record_is_sound(&SLOT_RECORD, record))
        return;
    log_warning("%s: what the last supervisor kept of its state is damaged", slot->name);
    record->state = LIFECYCLE_STOPPED;
    record->kill_reason = DEATH_EXIT;
    record->role = SLOT_MEMBER;
    record->status[0] = '\0';
}

void slot_note_left(struct pool_set *set, const struct kept_state *state)
{
    const struct slot_record *record = (const struct slot_record *)(const void *)state->data;

    pool_set_note_generation(set, record->generation);
    pool_set_note_generation(set, record->tried);
}

void slot_open_kept(struct slot *slot)
{
    char name[KEPT_NAME_MAX + 2];
    bool found;

    name_kept(name, slot, slot->twin);
    slot->kept = kept_state_open(&slot_context(slot)->process->kept, name, &found);
    slot->resumes = found && record_of(slot)->known;
    if (slot->resumes)
        check_record(slot);
}

void slot_keep_calls(struct slot *slot)
{
    struct slot_record *record = record_of(slot);

    slot->worker.process.calls.received = record ? &record->received : NULL;
}

static void take_record(struct slot *slot, const struct slot_record *record)
{
    slot->generation = record->generation;
    slot->born = record->born;
    slot->tried = record->tried;
    slot->since_at = record->since_at;
    slot->n_restarts = record->n_restarts;
    slot->n_recycled = record->n_recycled;
    slot->worker.jobs_done = record->jobs_done;
    slot->health.n_failures = record->n_failures;
    slot->health.since_at = record->failing_since_at;
    slot->tally.n_pauses = record->n_pauses;
    slot->notify_user = record->notifier - 1;
}

/* The output's descriptor may follow. */
static int adopt_endpoint(struct slot *slot, struct held *held)
{
    const bool eventfd = loop_wake_backend(slot_context(slot)->loop) == WAKE_EVENTFD;
    const size_t n = ENDPOINT_HELD_FDS - !eventfd;
    struct endpoint_adoption adoption = {
        .blobs = slot->pool->set->blobs,
        .announcements = slot_context(slot)->announcements,
        .kept = slot_context(slot)->messages->kept,
    };
    int r = held->n_fds >= n ? endpoint_fds_from_held(&adoption.fds, held->fds, n) : -EPROTO;

    if (r == 0)
        r = endpoint_adopt(&slot->worker.endpoint, slot_context(slot)->loop, &adoption,
                           &SLOT_ENDPOINT);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        held->fds[i] = -1;
    slot->worker.endpoint_open = true;
    slot->worker.wants_room = false;
    slot_trace_want(slot);
    delivery_adopt(slot->actor, &slot->worker.endpoint);
    return 0;
}

static int adopt_rings(struct slot *slot, struct held *held)
{
    int r;

    if (slot_is_actor(slot))
        return adopt_endpoint(slot, held);
    r = held->n_fds > 0 ? slot_adopt_notify(slot, held->fds[0]) : -EPROTO;
    if (r == 0)
        held->fds[0] = -1;
    return r;
}

/* Best effort: without it, the worker creates no jobs. */
static void adopt_submits(struct slot *slot)
{
    const struct submit_socket_options options = slot_submit_options(slot);
    int r = submit_socket_adopt(&slot->worker.submits, &options, &slot_context(slot)->process->held,
                                slot->kept->name);

    if (r < 0)
        log_warning("%s can create no jobs until it restarts: %s", slot->name, strerror(-r));
}

static int adopt_worker(struct slot *slot, struct held *held)
{
    int r = held->pid > 0 ? adopt_rings(slot, held) : -EPROTO;

    if (r < 0) {
        if (slot_is_actor(slot) && held->n_fds > 0)
            slot_hand_lose(slot, held->fds[0]);
        held_discard(held);
        return r;
    }
    r = process_adopt(&slot->worker.process, held, &SLOT_PROCESS);
    if (r < 0) {
        if (slot_is_actor(slot))
            slot_hand_lose(slot, slot->worker.endpoint.channel.mine.fd);
        slot_close_endpoint(slot);
        notify_server_deinit(&slot->worker.notify);
    } else if (!slot->worker.process.ended) {
        adopt_submits(slot);
        slot_trace_watch(slot, true);
    }
    return r;
}

/* The keeper gets the next inbox first: once the worker has it, the former one is of no use to
 * the next supervisor. */
static void pass_inbox_on(struct slot *slot)
{
    slot_hand_resume(slot);
    if (hold_actor(slot) < 0 || !process_context_flush(slot_context(slot)->process))
        log_warning("%s will not outlive another crash of the supervisor", slot->name);
    endpoint_hand_over(&slot->worker.endpoint);
    if (endpoint_open(&slot->worker.endpoint) < 0)
        endpoint_break(&slot->worker.endpoint, "cannot be read: out of memory");
}

/* Notes why the worker was to end, so that its end counts as a stop and not as a failure. */
static void note_end(struct slot *slot, const struct slot_record *record)
{
    slot_set_kill_reason(slot, (enum death_cause)record->kill_reason);
    if (record->kill_reason == DEATH_STOP && slot->plan == SLOT_ON)
        slot->plan = SLOT_AGAIN;
}

/* Asks a worker that was to end again: how far its end has come is not known. */
static void end_again(struct slot *slot, const struct slot_record *record)
{
    const enum death_cause reason = (enum death_cause)record->kill_reason;

    if (reason != DEATH_EXIT && reason != DEATH_STOP)
        (void)slot_kill(slot, reason);
    else if (reason == DEATH_STOP && slot->plan == SLOT_ON)
        slot_restart(slot);
    else if (reason == DEATH_STOP || slot->retired)
        slot_stop(slot, false);
    if (record->next_step_at > 0 && !slot_is_up(slot))
        timer_arm(slot_timers(slot), &slot->state_timer, record->next_step_at);
}

static void go_on(struct slot *slot, const struct slot_record *record)
{
    const bool came_up = record->came_up || slot->pool->config->type == CONFIG_SERVICE;

    slot_event(slot, LIFECYCLE_EVENT_ADOPTED);
    slot->worker.readiness = came_up ? WORKER_CAME_UP : WORKER_NOT_READY;
    slot->worker.signalled = record->signalled ? SIGNALLED_BEFORE : SIGNALLED_NOT;
    if (slot_is_actor(slot))
        pass_inbox_on(slot);
    if (slot->worker.process.ended) {
        note_end(slot, record);
        return;
    }
    timer_arm(slot_timers(slot), &slot->state_timer,
              usec_add(record->started_at, slot->pool->config->timeout_start));
    if (came_up && slot_is_actor(slot))
        slot_is_ready(slot);
    else if (came_up)
        slot_event(slot, LIFECYCLE_EVENT_READY);
    if (slot->n_jobs > 0)
        slot_resume_jobs(slot);
    if (slot->state == record->state)
        slot->since_at = record->since_at;
    end_again(slot, record);
}

static bool adopt(struct slot *slot, const struct slot_record *record)
{
    struct held *held =
        held_take(&slot_context(slot)->process->held,
                  slot_is_actor(slot) ? HOLDING_WORKER : HOLDING_SERVICE, slot->kept->name);
    int r;

    if (!held) {
        /* The output in it is that of a process which has ended. */
        capture_forget(kept_state_output(&slot_context(slot)->process->kept, slot->kept));
        return false;
    }
    slot_begin_worker(slot);
    slot->generation = record->generation;
    slot->worker.started_at = record->started_at;
    slot->worker.jobs_done = record->jobs_done;
    r = adopt_worker(slot, held);
    if (r < 0) {
        log_error("%s cannot be taken over from the last supervisor, and is killed: %s", slot->name,
                  strerror(-r));
        return false;
    }
    slot->worker.adopted = true;
    slot_set_status(slot, record->status);
    go_on(slot, record);
    slot->worker.adopted = false;
    return true;
}

void slot_resume(struct slot *slot)
{
    const struct slot_record *record = record_of(slot);
    const usec_t now = clock_steady();

    take_record(slot, record);
    /* A place that was beyond the pool's size, and is not any more, also wants a worker. */
    slot->plan = !slot->retired && (record->wanted || (record->retired && slot->pool->wanted))
                     ? SLOT_ON
                     : SLOT_OFF;
    if (adopt(slot, record) || slot->plan == SLOT_OFF) {
        /* nothing else to do */
    } else if (record->state == LIFECYCLE_FAILED) {
        slot_set_state(slot, LIFECYCLE_FAILED);
    } else if (record->state == LIFECYCLE_BACKOFF && record->restart_at > now) {
        slot_set_state(slot, LIFECYCLE_BACKOFF);
        slot->restart_at = record->restart_at;
        slot_arm(slot, record->restart_at - now);
    } else {
        slot_start(slot);
    }
    slot->resumes = false;
    slot_count(slot);
    slot_keep(slot);
}
