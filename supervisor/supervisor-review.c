/* SPDX-License-Identifier: MIT */
#include "event-id.h"
#include "group.h"
#include "order.h"
#include "slot.h"
#include "supervisor-private.h"
#include <stdio.h>

#define STATUS_DELAY (200 * USEC_PER_MSEC)

struct census {
    unsigned up, wanted, trouble; /* slots */
    unsigned undecided;           /* groups */
};

static void count_cell(struct census *census, const struct cell *cell)
{
    for (size_t i = 0; i < cell->n_slots; i++) {
        const struct slot *slot = cell->slots[i];
        census->wanted += slot->wanted;
        census->up += slot_is_up(slot);
        census->trouble += slot->state == LIFECYCLE_BACKOFF || slot->state == LIFECYCLE_FAILED;
    }
}

static struct census take_census(struct supervisor *supervisor)
{
    struct census census = {0};
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(&supervisor->context.registry, &cursor))) {
        census.undecided += !group_decided(group);
        group_each_cell (cell, group)
            count_cell(&census, cell);
    }
    return census;
}

/* Ready = every worker has come up once or has been seen to fail: the pools' health is status, not
 * start. */
static void review_readiness(struct supervisor *supervisor, const struct census *census)
{
    char message[128];

    if (supervisor->ready || census->undecided > 0)
        return;
    supervisor->ready = true;
    supervisor->context.state = CONTEXT_RUNNING;
    notify_ready(&supervisor->notify, loop_now(loop_of(supervisor)));
    (void)snprintf(message, sizeof(message), "ready: %u of %u workers up in %zu groups", census->up,
                   census->wanted, supervisor->context.registry.n_groups);
    event_emit(&supervisor->context.events, (struct event){
                                                .level = LOG_LEVEL_NOTICE,
                                                .type = "supervisor.ready",
                                                .message_id = EVENT_ID_READY,
                                                .message = message,
                                            });
}

static void count_workers(struct supervisor *supervisor)
{
    struct census census = take_census(supervisor);

    notify_status(&supervisor->notify, loop_now(loop_of(supervisor)),
                  "%u of %u workers up in %zu groups%s", census.up, census.wanted,
                  supervisor->context.registry.n_groups,
                  census.trouble > 0 ? "; some are in trouble, see troupectl status" : "");
    review_readiness(supervisor, &census);
}

void supervisor_on_status_due(struct timer *timer, usec_t now)
{
    struct supervisor *supervisor = supervisor_of(timer, status_timer);

    (void)now;
    if (supervisor->context.state != CONTEXT_STOPPING)
        count_workers(supervisor);
}

/* Removed groups that have drained. */
static void reap_groups(struct supervisor *supervisor)
{
    struct registry *registry = &supervisor->context.registry;
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(registry, &cursor)))
        if (group->removed && group_down(group) && group->n_live == 0) {
            log_notice("group %s is gone", group->name);
            registry_remove(registry, group);
            group_free(group);
        }
}

void supervisor_review(struct loop_deferred *deferred)
{
    struct supervisor *supervisor = supervisor_of(deferred, review);
    struct loop *loop = loop_of(supervisor);

    reap_groups(supervisor);
    if (supervisor->context.state == CONTEXT_STOPPING) {
        if (!order_stop(&supervisor->context.registry))
            loop_stop(loop);
        return;
    }
    (void)order_start(&supervisor->context.registry);
    if (!supervisor->ready)
        count_workers(supervisor);
    else if (notify_wanted(&supervisor->notify) && !timer_armed(&supervisor->status_timer))
        (void)timer_arm(loop_timers(loop), &supervisor->status_timer,
                        usec_add(loop_now(loop), STATUS_DELAY));
}
