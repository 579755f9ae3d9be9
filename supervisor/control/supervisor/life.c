/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: Start, Stop, Restart, Reset, Signal, Pause, Resume, Drain, Resize. */

#include "supervisor/config/syntax/values.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/setting-call.h"
#include "supervisor/control/target.h"
#include "supervisor/event/event.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/varlink/request-parts.h"
#include <stdlib.h>
#include <string.h>

/* ---- waiting until a change is complete ---- */

enum wait_goal {
    WAIT_GOAL_NONE,    /* all cells of the target have been told */
    WAIT_GOAL_UP,      /* every worker of the target is ready */
    WAIT_GOAL_DOWN,    /* stopped */
    WAIT_GOAL_DRAINED, /* no job of the group runs */
    WAIT_GOAL_SIZE,    /* the pool has its new size, new workers are ready, surplus ones gone */
};

struct wait {
    struct event_subscriber subscriber;
    struct loop_deferred check;
    bool second; /* check once more in the next turn */
    struct request *request;
    const char *target; /* borrowed from the call */
    enum wait_goal goal;
    size_t old_size, new_size; /* WAIT_GOAL_SIZE */
};

enum verdict {
    WAIT_ON,
    WAIT_REACHED,
    WAIT_MISSED, /* the goal can no longer be reached */
};

struct finding {
    enum verdict verdict;
    bool again;                 /* with WAIT_ON: no event tells when to look again */
    const char *target, *state; /* of the obstacle */
};

static struct finding found(enum verdict verdict)
{
    return (struct finding){.verdict = verdict};
}

static struct finding missed(const char *target, const char *state)
{
    return (struct finding){.verdict = WAIT_MISSED, .target = target, .state = state};
}

/* Whether a slot that should run is up, on its way, or failed. */
static struct finding slot_comes_up(const struct slot *slot)
{
    if (slot->plan == SLOT_AGAIN || (slot->plan == SLOT_ON && slot->state == LIFECYCLE_STOPPED))
        return found(WAIT_ON);
    if (slot_is_up(slot))
        return found(WAIT_REACHED);
    if (slot_is_down(slot))
        return missed(slot->name, lifecycle_state_to_string(slot->state));
    return found(WAIT_ON);
}

static struct finding slot_goes_down(const struct slot *slot)
{
    if (slot->plan != SLOT_OFF)
        return missed(slot->name, lifecycle_state_to_string(slot->state));
    return found(slot_is_down(slot) ? WAIT_REACHED : WAIT_ON);
}

/* Adds the finding about one part of the target. Returns whether the goal is missed. */
static bool is_missed_with(struct finding *all, struct finding one)
{
    if (one.verdict != WAIT_REACHED)
        *all = one;
    return one.verdict == WAIT_MISSED;
}

/* The result for the slots from `first` on: a failed one, else one on its way, else success. */
static struct finding slots_all(const struct cell *cell, size_t first, size_t end,
                                struct finding (*look)(const struct slot *))
{
    struct finding all = found(WAIT_REACHED);
    const struct slot *slot;

    while (first < end && (slot = pool_next_slot(&cell->pool, &first)))
        if (is_missed_with(&all, look(slot)))
            break;
    return all;
}

static struct finding size_changes(const struct wait *wait, const struct cell *cell)
{
    if (cell->pool.size != wait->new_size)
        return missed(wait->target, "resized again");
    if (!pool_is_trimmed(&cell->pool))
        return found(WAIT_ON);
    if (!cell->pool.wanted)
        return found(WAIT_REACHED);
    return slots_all(cell, wait->old_size, cell->pool.size, slot_comes_up);
}

static struct finding look_at_cell(const struct wait *wait, const struct cell *cell)
{
    switch (wait->goal) {
    case WAIT_GOAL_UP:
        return slots_all(cell, 0, cell->pool.size, slot_comes_up);
    case WAIT_GOAL_DOWN:
        return slots_all(cell, 0, SIZE_MAX, slot_goes_down);
    case WAIT_GOAL_SIZE:
        return size_changes(wait, cell);
    default:
        return found(WAIT_ON);
    }
}

/* Whether some workers are on their way, and all others have arrived. */
static bool must_wait_on(const struct wait *wait, const struct census *census)
{
    if (wait->goal == WAIT_GOAL_DOWN)
        return census->n[CENSUS_WANTED] == 0 && !census_down(census);
    return census->n[CENSUS_UNDECIDED] > 0 && census->n[CENSUS_FAILED] == 0 &&
           census->n[CENSUS_UNWANTED] == 0;
}

/* Skips cells that retire. */
static struct finding look_at_group(const struct wait *wait, const struct group *group)
{
    struct finding all = found(WAIT_REACHED);

    if (must_wait_on(wait, &group->pools.census))
        return found(WAIT_ON);
    group_each_cell (cell, group)
        if (!cell_is_retiring(cell) && is_missed_with(&all, look_at_cell(wait, cell)))
            break;
    return all;
}

static struct finding group_drains(const struct group *group)
{
    if (group->drain == GROUP_OPEN)
        return missed(group->name, "resumed");
    return found(group->drain == GROUP_WORKED_OFF ? WAIT_REACHED : WAIT_ON);
}

static struct finding look(const struct wait *wait)
{
    struct registry_target target;

    if (registry_resolve(wait->request->context->registry, wait->target, &target) < 0)
        return wait->goal <= WAIT_GOAL_DOWN && wait->goal != WAIT_GOAL_UP
                   ? found(WAIT_REACHED)
                   : missed(wait->target, "gone");
    if (group_is_visited(target.group))
        return (struct finding){.verdict = WAIT_ON, .again = true};
    if (wait->goal == WAIT_GOAL_NONE)
        return found(WAIT_REACHED);
    if (wait->goal == WAIT_GOAL_DRAINED)
        return group_drains(target.group);
    if (wait->goal != WAIT_GOAL_DOWN && group_is_blocked(target.group))
        return group_fault_is_tried(target.group)
                   ? found(WAIT_ON)
                   : missed(target.group->name, group_fault_text(target.group));
    if (target.slot)
        return wait->goal == WAIT_GOAL_UP ? slot_comes_up(target.slot)
                                          : slot_goes_down(target.slot);
    return target.cell ? look_at_cell(wait, target.cell) : look_at_group(wait, target.group);
}

static void report_left(struct reply *reply, const struct wait *wait)
{
    const struct group *group = registry_group_of(wait->request->context->registry, wait->target);

    reply_uint(reply, "left", group ? group->counts.n[JOBS_LIVE] : 0);
}

static void answer(struct wait *wait, struct finding finding)
{
    struct request *request = wait->request;
    struct reply *reply;

    if (finding.verdict == WAIT_MISSED) {
        request_fail_strings(request, "NotReached", "target", finding.target, "state",
                             finding.state);
        return;
    }
    reply = request_begin(request);
    if (wait->goal == WAIT_GOAL_SIZE)
        reply_uint(reply, "old_size", wait->old_size);
    if (wait->goal == WAIT_GOAL_DRAINED)
        report_left(reply, wait);
    request_end(request);
}

/*
 * Runs at the end of this turn and of the next: events come in the middle of a change, and a pool
 * may drop surplus slots after the first check.
 */
static void check(struct loop_deferred *deferred)
{
    struct wait *wait = list_entry(deferred, struct wait, check);
    struct finding finding = look(wait);

    if (finding.verdict != WAIT_ON) {
        answer(wait, finding);
        return;
    }
    if (wait->second || finding.again)
        loop_defer(wait->request->context->loop, &wait->check);
    wait->second = false;
}

static void arm(struct wait *wait)
{
    wait->second = true;
    loop_defer(wait->request->context->loop, &wait->check);
}

static void on_event(struct event_subscriber *subscriber, const struct event *event)
{
    arm(list_entry(subscriber, struct wait, subscriber));
}

static void drop(struct request *request)
{
    struct wait *wait = request->state;

    event_unsubscribe(&wait->subscriber);
    loop_undefer(&wait->check);
    free(wait);
}

/*
 * Ends the request when the goal is reached, or with NotReached when it no longer can be: a worker
 * failed, or another call changed the target. The change continues if the client disconnects.
 * Returns NULL when out of memory; then it has been answered.
 */
static struct wait *wait_for(struct request *request, enum wait_goal goal)
{
    struct wait *wait = request_allocate(request, sizeof(*wait));

    if (!wait)
        return NULL;
    wait->request = request;
    wait->goal = goal;
    wait->target = request_string(request, "target");
    wait->subscriber.fn = on_event;
    loop_deferred_init(&wait->check, check);
    event_subscribe(&request->context->events->subscribers, &wait->subscriber);
    request->state = wait;
    request->drop = drop;
    arm(wait);
    return wait;
}

/* ---- methods ---- */

static void stop_group(struct group *group)
{
    group_stop(group, false);
}

static void stop_cell(struct cell *cell)
{
    cell_stop(cell, false);
}

static void stop_slot(struct slot *slot)
{
    slot_stop(slot, false);
}

static void stop_within(const struct registry_target *target, usec_t time)
{
    if (target->slot)
        slot_stop_within(target->slot, time);
    else if (!target->cell)
        group_stop_within(target->group, time);
    else
        pool_each_slot (slot, &target->cell->pool)
            slot_stop_within(slot, time);
}

static const struct life_change {
    const char *method;
    void (*group)(struct group *group);
    void (*cell)(struct cell *cell);
    void (*slot)(struct slot *slot);
    enum wait_goal goal; /* WAIT_GOAL_NONE = the method has no parameter "wait"; only with
                            WAIT_GOAL_DOWN it has "within_usec" and "keep" */
} life_changes[] = {
    {"Start", group_start, cell_start, slot_start, WAIT_GOAL_UP},
    {"Stop", stop_group, stop_cell, stop_slot, WAIT_GOAL_DOWN},
    {"Restart", group_restart, cell_restart, slot_restart, WAIT_GOAL_UP},
    {"Reset", group_reset, cell_reset, slot_reset, WAIT_GOAL_NONE},
};

static const struct life_change *change_of(const struct request *request)
{
    const struct life_change *change = life_changes;

    while (strcmp(change->method, request->method->name) != 0)
        change++;
    return change;
}

static void make_change(const struct request *request, const struct registry_target *target)
{
    const struct life_change *change = change_of(request);

    if (target->slot)
        change->slot(target->slot);
    else if (target->cell)
        change->cell(target->cell);
    else
        change->group(target->group);
    group_review_drain(target->group);
    if (request->method->begins)
        group_fault_retry(target->group);
    if (change->goal == WAIT_GOAL_DOWN && request_has(request, "within_usec"))
        stop_within(target, (usec_t)request_int(request, "within_usec", 0));
}

/* Answers once each cell of the group has been told. */
static void end_when_told(struct request *request, const struct group *group)
{
    if (group && group_is_visited(group))
        (void)wait_for(request, WAIT_GOAL_NONE);
    else
        request_done(request);
}

static void end_change(struct request *request)
{
    const enum wait_goal goal = change_of(request)->goal;

    if (goal != WAIT_GOAL_NONE && request_bool(request, "wait"))
        (void)wait_for(request, goal);
    else
        end_when_told(request, registry_group_of(request->context->registry,
                                                 request_string(request, "target")));
}

/* ---- stops that are kept ---- */

/* While the setting was written, those of earlier runs may have been read, and have stopped the
 * group. */
static void take_effect(const struct setting_call *call)
{
    struct group *group = registry_find(call->context->registry, call->name);

    if (!group)
        return;
    if (call->request && !call->removes)
        make_change(call->request, &(struct registry_target){.group = group});
    else if (!call->removes)
        group_stop(group, false);
    else if (!group->wanted)
        group_start(group);
}

static void keep(struct request *request, const char *name, bool stops)
{
    control_set(request, &(struct setting_call){.settings = request->context->groups->stops,
                                                .name = name,
                                                .removes = !stops,
                                                .take_effect = take_effect,
                                                .end = end_change});
}

/* Whether the group stays stopped, or this is not known yet. */
static bool may_stay_stopped(const struct request *request, const struct group *group)
{
    const struct store *store = request->context->durable->store;

    if (request->context->groups->stops->read || !store)
        return group_stays_stopped(group);
    return store_state(store) == STORE_OPENING || store_state(store) == STORE_OPEN;
}

static void change_life(struct request *request)
{
    const char *name = request_string(request, "target");
    const enum wait_goal goal = change_of(request)->goal;
    const bool stops = goal == WAIT_GOAL_DOWN, keeps = stops && request_bool(request, "keep");
    struct registry_target target;
    bool is_group;

    if ((stops && !request_range(request, "within_usec", 1, INT64_MAX)) ||
        !control_find_target(request, name, &target))
        return;
    is_group = !target.cell && !target.slot;
    if (keeps && !is_group) {
        (void)request_refuse(request, "keep", "with a group as target");
        return;
    }
    control_log_change(request, name);
    if (keeps) {
        keep(request, name, true);
        return;
    }
    make_change(request, &target);
    if (goal == WAIT_GOAL_UP && is_group && may_stay_stopped(request, target.group))
        keep(request, name, false);
    else
        end_change(request);
}

/* ---- Signal ---- */

/* A group with keys may have very many cells: those get the signal in several turns. */
struct signal_call {
    struct request_parts parts;
    struct list_cursor cells;
    uint64_t group; /* reference */
    int signal;
    unsigned n; /* workers that got it */
};

static unsigned signal_cell(const struct cell *cell, int signal)
{
    unsigned n = 0;

    pool_each_slot (slot, &cell->pool)
        n += slot_send_signal(slot, signal);
    return n;
}

static bool signal_next(struct request_parts *parts)
{
    struct signal_call *call = list_entry(parts, struct signal_call, parts);
    const struct group *group = registry_get(parts->request->context->registry, call->group);
    const struct cell *cell = group ? cell_table_at(&group->cells, &call->cells) : NULL;

    if (!cell)
        return false;
    list_cursor_advance(&call->cells);
    call->n += signal_cell(cell, call->signal);
    (void)request_part_full(parts, cell->pool.n_slots);
    return true;
}

static void answer_signal(struct request_parts *parts)
{
    const struct signal_call *call = list_entry(parts, struct signal_call, parts);

    reply_uint(request_part_reply(parts), "workers", call->n);
}

static void free_signal(struct request_parts *parts)
{
    struct signal_call *call = list_entry(parts, struct signal_call, parts);

    list_cursor_end(&call->cells);
    free(call);
}

static void signal_all_cells(struct request *request, struct group *group, int signal)
{
    struct signal_call *call = request_allocate(request, sizeof(*call));

    if (!call)
        return;
    call->parts =
        (struct request_parts){.step = signal_next, .finish = answer_signal, .free = free_signal};
    call->group = group->reference;
    call->signal = signal;
    list_cursor_begin(&call->cells, &group->cells.cursors, &group->cells.cells, false);
    request_in_parts(request, &call->parts);
}

static void signal_target(struct request *request)
{
    const char *name = request_string(request, "target"), *text = request_string(request, "signal");
    struct registry_target target;
    int signal;

    if (!control_find_target(request, name, &target))
        return;
    signal = target.group->config->reload_signal;
    if (text && values_signal(text, &signal) != 0) {
        (void)request_refuse(request, "signal", "the name or number of a signal, such as SIGUSR1");
        return;
    }
    if (signal < 0) {
        (void)request_refuse(request, "signal",
                             "the name or number of a signal, as the group has no ReloadSignal=");
        return;
    }
    control_log_change(request, name);
    if (!target.cell && !target.slot && group_is_keyed(target.group)) {
        signal_all_cells(request, target.group, signal);
        return;
    }
    reply_uint(request_begin(request), "workers",
               target.slot ? slot_send_signal(target.slot, signal)
                           : signal_cell(target.cell ? target.cell : target.group->cell, signal));
    request_end(request);
}

/* Finds a target that has a queue. */
static bool find_queue(struct request *request, struct registry_target *ret)
{
    const char *target = request_string(request, "target");

    if (!control_find_pool(request, target, ret))
        return false;
    if (ret->group->config->type == CONFIG_ACTOR) {
        control_log_change(request, target);
        return true;
    }
    request_fail_string(request, "NotAnActor", "group", ret->group->name);
    return false;
}

static void set_paused(struct request *request)
{
    const bool paused = strcmp(request->method->name, "Pause") == 0;
    struct registry_target target;
    int r = 0;

    if (!find_queue(request, &target))
        return;
    if (!target.cell && !paused)
        group_end_drain(target.group);
    if (target.cell)
        r = group_set_cell_paused(target.cell, paused);
    else
        group_set_paused(target.group, paused);
    if (r < 0)
        request_internal(request, r);
    else
        end_when_told(request, target.group);
}

static void drain(struct request *request)
{
    struct registry_target target;

    if (!find_queue(request, &target))
        return;
    if (target.cell && group_is_keyed(target.group)) {
        (void)request_refuse(request, "target", "a group");
        return;
    }
    group_drain(target.group);
    if (request_bool(request, "wait")) {
        (void)wait_for(request, WAIT_GOAL_DRAINED);
        return;
    }
    reply_uint(request_begin(request), "left", target.group->counts.n[JOBS_LIVE]);
    request_end(request);
}

static void fail_size(struct request *request, int64_t size)
{
    struct reply *reply = request_begin_error(request, "BadSize");

    reply_int(reply, "size", size);
    reply_int(reply, "minimum", 1);
    reply_int(reply, "maximum", GROUP_SIZE_MAX);
    request_end(request);
}

static void fail_elastic(struct request *request, const struct config_group *config)
{
    struct reply *reply = request_begin_error(request, "Elastic");

    reply_string(reply, "group", config->name);
    reply_uint(reply, "minimum", config->size.low);
    reply_uint(reply, "maximum", config->size.high);
    request_end(request);
}

static void await_size(struct request *request, size_t old_size, size_t new_size)
{
    struct wait *wait = wait_for(request, WAIT_GOAL_SIZE);

    if (!wait)
        return;
    wait->old_size = old_size;
    wait->new_size = new_size;
}

static void resize(struct request *request)
{
    const char *name = request_string(request, "target");
    const int64_t size = request_int(request, "size", 0);
    struct registry_target target;
    size_t old_size;
    int r;

    if (!control_find_pool(request, name, &target))
        return;
    old_size = target.cell ? target.cell->pool.size : target.group->size;
    r = target.cell ? group_resize_cell(target.cell, size) : group_resize(target.group, size);
    if (r == 0)
        control_log_change(request, name);
    if (r == GROUP_E_BAD_SIZE) {
        fail_size(request, size);
    } else if (r == GROUP_E_ELASTIC) {
        fail_elastic(request, target.group->config);
    } else if (r < 0) {
        request_internal(request, r);
    } else if (request_bool(request, "wait")) {
        await_size(request, old_size, (size_t)size);
    } else {
        reply_uint(request_begin(request), "old_size", old_size);
        request_end(request);
    }
}

const struct request_method control_life_methods[] = {
    {"Start", change_life, .changes = true, .begins = true},
    {"Stop", change_life, .changes = true},
    {"Restart", change_life, .changes = true, .begins = true},
    {"Reset", change_life, .changes = true, .begins = true},
    {"Signal", signal_target, .changes = true},
    {"Pause", set_paused, .changes = true, .begins = true},
    {"Resume", set_paused, .changes = true, .begins = true},
    {"Drain", drain, .changes = true},
    {"Resize", resize, .changes = true, .begins = true},
    {0},
};
