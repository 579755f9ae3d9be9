/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: Start, Stop, Restart, Reset, Pause, Resume, Drain, Resize. */

#include "supervisor/control/interfaces.h"
#include "supervisor/control/supervisor/wait.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/pool/slot/slot.h"

struct life_parameters {
    const char *target;
    bool wait;
    struct varlink_int size, within;
};

struct life_change {
    void (*group)(struct group *group);
    void (*cell)(struct cell *cell);
    void (*slot)(struct slot *slot);
    enum control_goal goal;
};

static void stop_group(struct group *group)
{
    group_stop(group, false);
}

static void stop_cell(struct cell *cell)
{
    pool_stop(&cell->pool, false);
}

static void stop_slot(struct slot *slot)
{
    slot_stop(slot, false);
}

static void stop_within(const struct registry_target *target, usec_t time)
{
    struct slot *slot;

    if (target->slot) {
        slot_stop_within(target->slot, time);
        return;
    }
    group_each_cell (cell, target->group)
        for (size_t i = 0;
             (!target->cell || target->cell == cell) && (slot = pool_next_slot(&cell->pool, &i));)
            slot_stop_within(slot, time);
}

static void change_life(struct request *request, const struct life_change *change)
{
    const struct life_parameters *given = request->parameters;
    struct registry_target target;

    if (!control_find_target(request, given->target, &target))
        return;
    control_log_change(request, given->target);
    if (target.slot)
        change->slot(target.slot);
    else if (target.cell)
        change->cell(target.cell);
    else
        change->group(target.group);
    group_review_drain(target.group);
    if (request->method->begins)
        group_fault_retry(target.group);
    if (given->within.set)
        stop_within(&target, (usec_t)given->within.value);
    if (given->wait && !request_is_oneway(request))
        control_wait(request,
                     &(struct control_wait_options){.goal = change->goal, .target = given->target});
    else
        request_done(request);
}

static void start(struct request *request)
{
    static const struct life_change change = {group_start, cell_start, slot_start, CONTROL_GOAL_UP};

    change_life(request, &change);
}

static void stop(struct request *request)
{
    static const struct life_change change = {stop_group, stop_cell, stop_slot, CONTROL_GOAL_DOWN};

    change_life(request, &change);
}

static void restart(struct request *request)
{
    static const struct life_change change = {group_restart, cell_restart, slot_restart,
                                              CONTROL_GOAL_UP};

    change_life(request, &change);
}

static void reset(struct request *request)
{
    static const struct life_change change = {group_reset, cell_reset, slot_reset, CONTROL_GOAL_UP};

    change_life(request, &change);
}

/* Finds a target that has a queue. */
static bool find_queue(struct request *request, struct registry_target *ret)
{
    const struct life_parameters *given = request->parameters;

    if (!control_find_pool(request, given->target, ret))
        return false;
    if (ret->group->config->type == CONFIG_ACTOR) {
        control_log_change(request, given->target);
        return true;
    }
    request_fail_string(request, "NotAnActor", "group", ret->group->name);
    return false;
}

static void set_group_paused(struct group *group, bool paused)
{
    if (!paused)
        group_end_drain(group);
    group_set_paused(group, paused);
}

static void set_paused(struct request *request, bool paused)
{
    struct registry_target target;
    int r = 0;

    if (!find_queue(request, &target))
        return;
    if (target.cell)
        r = group_set_cell_paused(target.cell, paused);
    else
        set_group_paused(target.group, paused);
    if (r < 0)
        request_internal(request, r);
    else
        request_done(request);
}

static void pause_target(struct request *request)
{
    set_paused(request, true);
}

static void resume_target(struct request *request)
{
    set_paused(request, false);
}

static void drain(struct request *request)
{
    const struct life_parameters *given = request->parameters;
    struct registry_target target;
    struct reply *reply;

    if (!find_queue(request, &target))
        return;
    if (target.cell && group_is_keyed(target.group)) {
        (void)request_refuse(request, "target", "a group");
        return;
    }
    group_drain(target.group);
    if (given->wait && !request_is_oneway(request)) {
        control_wait(request, &(struct control_wait_options){.goal = CONTROL_GOAL_DRAINED,
                                                             .target = target.group->name});
        return;
    }
    reply = request_begin(request);
    reply_uint(reply, "left", target.group->counts.n[JOBS_LIVE]);
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

static void resize(struct request *request)
{
    const struct life_parameters *given = request->parameters;
    struct registry_target target;
    size_t old_size;
    int r;

    if (!control_find_pool(request, given->target, &target))
        return;
    old_size = target.cell ? target.cell->pool.size : target.group->size;
    r = target.cell ? group_resize_cell(target.cell, given->size.value)
                    : group_resize(target.group, given->size.value);
    if (r == 0)
        control_log_change(request, given->target);
    if (r == GROUP_E_BAD_SIZE) {
        fail_size(request, given->size.value);
    } else if (r < 0) {
        request_internal(request, r);
    } else if (given->wait && !request_is_oneway(request)) {
        control_wait(request,
                     &(struct control_wait_options){.goal = CONTROL_GOAL_SIZE,
                                                    .target = given->target,
                                                    .old_size = old_size,
                                                    .new_size = (size_t)given->size.value});
    } else {
        reply_uint(request_begin(request), "old_size", old_size);
        request_end(request);
    }
}

#define TARGET_ROW VARLINK_ROW("target", STRING, life_parameters, target, .required = true)
#define WAIT_ROW   VARLINK_ROW("wait", BOOL, life_parameters, wait)

static const struct varlink_parameter target_table[] = {TARGET_ROW, {0}};
static const struct varlink_parameter start_table[] = {TARGET_ROW, WAIT_ROW, {0}};
static const struct varlink_parameter stop_table[] = {
    TARGET_ROW,
    WAIT_ROW,
    VARLINK_ROW("within_usec", INT, life_parameters, within, .allowed = "microseconds, 1 or more",
                .min = 1),
    {0},
};
static const struct varlink_parameter resize_table[] = {
    TARGET_ROW,
    WAIT_ROW,
    VARLINK_ROW("size", INT, life_parameters, size, .required = true),
    {0},
};

const struct request_method control_life_methods[] = {
    {"Start", start, start_table, .changes = true, .begins = true},
    {"Stop", stop, stop_table, .changes = true},
    {"Restart", restart, start_table, .changes = true, .begins = true},
    {"Reset", reset, target_table, .changes = true, .begins = true},
    {"Pause", pause_target, target_table, .changes = true, .begins = true},
    {"Resume", resume_target, target_table, .changes = true, .begins = true},
    {"Drain", drain, start_table, .changes = true},
    {"Resize", resize, resize_table, .changes = true, .begins = true},
    {0},
};
