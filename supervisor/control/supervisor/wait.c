/* SPDX-License-Identifier: MIT */

#include "supervisor/control/supervisor/wait.h"

#include "supervisor/control/control-context.h"
#include "supervisor/event/event.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/pool/slot/slot.h"
#include <stdlib.h>
#include <string.h>

struct wait {
    struct event_subscriber subscriber;
    struct loop_deferred check;
    bool second; /* check once more in the next turn */
    struct request *request;
    enum control_goal goal;
    size_t old_size, new_size;
    char target[];
};

enum verdict {
    WAIT_ON,
    WAIT_REACHED,
    WAIT_MISSED, /* the goal can no longer be reached */
};

struct finding {
    enum verdict verdict;
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
    if (slot->restart_asked || (slot->wanted && slot->state == LIFECYCLE_STOPPED))
        return found(WAIT_ON);
    if (slot_is_up(slot))
        return found(WAIT_REACHED);
    if (slot_is_down(slot))
        return missed(slot->name, lifecycle_state_to_string(slot->state));
    return found(WAIT_ON);
}

static struct finding slot_goes_down(const struct slot *slot)
{
    if (slot->wanted || slot->restart_asked)
        return missed(slot->name, lifecycle_state_to_string(slot->state));
    return found(slot_is_down(slot) ? WAIT_REACHED : WAIT_ON);
}

/* Of the slots from `first` on: a failed one, else one on its way, else success. */
static struct finding slots_all(const struct cell *cell, size_t first, size_t end,
                                struct finding (*look)(const struct slot *))
{
    struct finding all = {.verdict = WAIT_REACHED};
    const struct slot *slot;

    while (first < end && (slot = pool_next_slot(&cell->pool, &first))) {
        struct finding one = look(slot);

        if (one.verdict == WAIT_MISSED)
            return one;
        if (one.verdict == WAIT_ON)
            all = one;
    }
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
    case CONTROL_GOAL_UP:
        return slots_all(cell, 0, cell->pool.size, slot_comes_up);
    case CONTROL_GOAL_DOWN:
        return slots_all(cell, 0, SIZE_MAX, slot_goes_down);
    case CONTROL_GOAL_SIZE:
        return size_changes(wait, cell);
    case CONTROL_GOAL_DRAINED:
        break;
    }
    return found(WAIT_ON);
}

/* Skips cells that retire. */
static struct finding look_at_group(const struct wait *wait, const struct group *group)
{
    struct finding all = found(WAIT_REACHED);

    group_each_cell (cell, group) {
        struct finding one = cell->retiring ? found(WAIT_REACHED) : look_at_cell(wait, cell);

        if (one.verdict == WAIT_MISSED)
            return one;
        if (one.verdict == WAIT_ON)
            all = one;
    }
    return all;
}

static struct finding group_drains(const struct group *group)
{
    if (!group->draining)
        return missed(group->name, "resumed");
    return found(group->worked_off ? WAIT_REACHED : WAIT_ON);
}

static struct finding look(const struct wait *wait)
{
    struct registry_target target;

    if (registry_resolve(wait->request->context->registry, wait->target, &target) < 0)
        return wait->goal == CONTROL_GOAL_DOWN ? found(WAIT_REACHED) : missed(wait->target, "gone");
    if (wait->goal == CONTROL_GOAL_DRAINED)
        return group_drains(target.group);
    if (wait->goal != CONTROL_GOAL_DOWN && group_is_blocked(target.group))
        return group_fault_is_tried(target.group)
                   ? found(WAIT_ON)
                   : missed(target.group->name, group_fault_text(target.group));
    if (target.slot)
        return wait->goal == CONTROL_GOAL_UP ? slot_comes_up(target.slot)
                                             : slot_goes_down(target.slot);
    return target.cell ? look_at_cell(wait, target.cell) : look_at_group(wait, target.group);
}

static void report_left(struct reply *reply, const struct wait *wait)
{
    const struct group *group = registry_find(wait->request->context->registry, wait->target);

    reply_uint(reply, "left", group ? group->counts.n[JOBS_LIVE] : 0);
}

static void answer(struct wait *wait, struct finding finding)
{
    struct request *request = wait->request;
    struct reply *reply;

    if (finding.verdict == WAIT_REACHED) {
        reply = request_begin(request);
        if (wait->goal == CONTROL_GOAL_SIZE)
            reply_uint(reply, "old_size", wait->old_size);
        if (wait->goal == CONTROL_GOAL_DRAINED)
            report_left(reply, wait);
    } else {
        reply = request_begin_error(request, "NotReached");
        reply_string(reply, "target", finding.target);
        reply_string(reply, "state", finding.state);
    }
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
    if (wait->second)
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
    (void)event;
    arm(list_entry(subscriber, struct wait, subscriber));
}

static void drop(struct request *request)
{
    struct wait *wait = request->state;

    event_unsubscribe(&wait->subscriber);
    loop_undefer(&wait->check);
    free(wait);
}

void control_wait(struct request *request, const struct control_wait_options *options)
{
    size_t size = strlen(options->target) + 1;
    struct wait *wait = request_allocate(request, sizeof(*wait) + size);

    if (!wait)
        return;
    wait->request = request;
    wait->goal = options->goal;
    wait->old_size = options->old_size;
    wait->new_size = options->new_size;
    memcpy(wait->target, options->target, size);
    wait->subscriber.fn = on_event;
    loop_deferred_init(&wait->check, check);
    event_subscribe(&request->context->events->subscribers, &wait->subscriber);
    request->state = wait;
    request->drop = drop;
    arm(wait);
}
