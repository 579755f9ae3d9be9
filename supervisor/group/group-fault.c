/* SPDX-License-Identifier: MIT */
#include "supervisor/group/group-fault.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/config/check/resolve.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/names/lookup.h"
#include "supervisor/group/fault-batch.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/undescribed.h"
#include "supervisor/process/backoff.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_MIN USEC_PER_SEC
#define RETRY_MAX (30 * USEC_PER_SEC)

struct group_fault {
    struct group *group;
    struct config_group *next; /* NULL = the group's own has the fault */
    struct fault_place place;  /* among those that are tried together */
    struct lookup lookup;      /* of its own, likewise below */
    struct timer timer;
    bool tried;    /* a lookup of its own is under way */
    bool is_alone; /* its names take long: others do not wait for them */
    unsigned n_tries;
    bool asked; /* report the outcome in any case */
};

static struct config_group *config_of(const struct group_fault *fault)
{
    return fault->next ? fault->next : fault->group->config;
}

static void tell_fault(const struct group_fault *fault)
{
    group_tell(fault->group, LOG_LEVEL_ERROR, "group.cannot-start", "%s: %s",
               group_is_blocked(fault->group) ? "cannot start"
                                              : "goes on with the configuration of before",
               config_of(fault)->fault);
}

/* Reads files that had a mistake again. */
static void read_again(struct group_fault *fault)
{
    const struct config_group *before = config_of(fault);
    struct config_group *config = NULL;

    if (!before->unread || group_is_undescribed(fault->group) ||
        config_read_group_alone(before->path, &config) < 0 || !config)
        return;
    config_refuse_other_kind(fault->group->config, config);
    fault->asked = fault->asked || !config->unread || strcmp(config->fault, before->fault) != 0;
    config_group_free(fault->next);
    fault->next = config;
}

/* Adds the names that the next try needs. Returns 0 or -ENOMEM. */
static int begin_try(struct group_fault *fault, struct names *names)
{
    read_again(fault);
    return config_want_group_names(config_of(fault), names);
}

static void try_again(struct group_fault *fault);
static void end_try(struct group_fault *fault, const struct names *names);

static int want_names(struct fault_place *place, struct names *names)
{
    return begin_try(list_entry(place, struct group_fault, place), names);
}

/* A name of another may have taken all the time: then it is not known what this one's would say. */
static void on_looked_up(struct fault_place *place, const struct names *names, bool late)
{
    struct group_fault *fault = list_entry(place, struct group_fault, place);

    if (late)
        try_again(fault);
    else
        end_try(fault, names);
}

static int wait_with_others(struct group_fault *fault, usec_t at)
{
    const struct group_context *context = fault->group->context;
    struct fault_batch *batch = &context->registry->faults;

    if (!batch->want)
        fault_batch_init(batch, want_names, on_looked_up);
    return fault_batch_wait(batch, &fault->place, context->loop, at);
}

static void wait_for_next_try(struct group_fault *fault)
{
    const struct backoff_policy policy = {.min = RETRY_MIN, .max = RETRY_MAX, .random = 0.2};
    const struct group_context *context = fault->group->context;
    usec_t delay, at;
    int r;

    if (group_is_undescribed(fault->group))
        return; /* a reload reads new files */
    delay = backoff_delay(&policy, fault->n_tries++, context->random);
    at = usec_add(loop_now(context->loop), delay);
    r = fault->is_alone ? timer_arm(loop_timers(context->loop), &fault->timer, at)
                        : wait_with_others(fault, at);

    if (r < 0)
        log_error("%s: out of memory arming a timer", fault->group->name);
}

void group_fault_unblock(struct group *group)
{
    group_each_cell (cell, group)
        if (cell->pool.wanted) {
            cell_start(cell);
            pool_roll_behind(&cell->pool);
        }
    if (group->wanted)
        group_start(group);
}

static void on_mended(struct group_fault *fault)
{
    struct config_group *next = TAKE_PTR(fault->next);
    struct group *group = fault->group;
    const bool blocked = group_is_blocked(group);
    int r;

    group_tell(group, LOG_LEVEL_NOTICE, "group.mended", "has what was missing");
    group_fault_end(group);
    if (!next) {
        group_fault_unblock(group);
        return;
    }
    r = group_reconfigure(group, next);
    if (r < 0) {
        log_error("%s: cannot take its new configuration: %s", group->name, strerror(-r));
        config_group_free(next);
    } else if (blocked) {
        group_fault_unblock(group);
    }
}

/* Reports a fault again only if it has changed or was asked for. */
static void end_try(struct group_fault *fault, const struct names *names)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config_group *config = config_of(fault);
    _cleanup_free_ char *before = config->unread ? NULL : TAKE_PTR(config->fault);
    bool asked = fault->asked, same;
    int r = config_resolve_group(config, names, &problems);

    config_problems_deinit(&problems);
    lookup_deinit(&fault->lookup);
    fault->tried = fault->asked = false;
    if (r < 0 && before)
        config->fault = TAKE_PTR(before);
    if (!config->fault) {
        on_mended(fault);
        return;
    }
    same = config->unread || (before && strcmp(before, config->fault) == 0);
    if (asked || (r == 0 && !same))
        tell_fault(fault);
    wait_for_next_try(fault);
}

static void on_lookup_done(struct lookup *lookup)
{
    struct group_fault *fault = list_entry(lookup, struct group_fault, lookup);

    fault->is_alone = fault_batch_is_late(&lookup->names);
    end_try(fault, &lookup->names);
}

static void try_again(struct group_fault *fault)
{
    int r;

    fault->tried = true;
    lookup_init(&fault->lookup, fault->group->context->loop, on_lookup_done);
    r = begin_try(fault, &fault->lookup.names);
    if (r == 0)
        r = lookup_start(&fault->lookup);
    if (r != 0)
        end_try(fault, &fault->lookup.names);
}

static void on_timer(struct timer *timer, usec_t now)
{
    (void)now;
    try_again(list_entry(timer, struct group_fault, timer));
}

int group_fault_begin(struct group *group, struct config_group *next)
{
    struct group_fault *fault = calloc(1, sizeof(*fault));

    if (!fault)
        return -ENOMEM;
    group_fault_end(group);
    fault->group = group;
    fault->next = next;
    timer_init(&fault->timer, on_timer);
    group->fault = fault;
    if (!group_is_undescribed(group))
        tell_fault(fault); /* else once its jobs have been counted */
    wait_for_next_try(fault);
    return 0;
}

void group_fault_end(struct group *group)
{
    struct group_fault *fault = TAKE_PTR(group->fault);

    if (!fault)
        return;
    timer_disarm(loop_timers(group->context->loop), &fault->timer);
    fault_batch_leave(&fault->place);
    lookup_deinit(&fault->lookup);
    config_group_free(fault->next);
    free(fault);
}

const char *group_fault_text(const struct group *group)
{
    return group->fault ? config_of(group->fault)->fault : NULL;
}

bool group_is_blocked(const struct group *group)
{
    return group->config->fault != NULL;
}

void group_fault_retry(struct group *group)
{
    struct group_fault *fault = group->fault;

    if (!fault)
        return;
    fault->asked = true;
    fault->n_tries = 0;
    if (group_fault_is_tried(group))
        return;
    timer_disarm(loop_timers(group->context->loop), &fault->timer);
    fault_batch_leave(&fault->place);
    try_again(fault);
}

bool group_fault_is_tried(const struct group *group)
{
    return group->fault && (group->fault->tried || group->fault->place.begun);
}
