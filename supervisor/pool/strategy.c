/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/strategy.h"

#include "supervisor/context.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/group/order.h"
#include "supervisor/pool/slot-private.h"
#include <stdio.h>

bool strategy_takes(enum config_strategy strategy, unsigned dead, unsigned index)
{
    switch (strategy) {
    case CONFIG_ONE_FOR_ONE:
        return false;
    case CONFIG_ONE_FOR_ALL:
        return index != dead;
    case CONFIG_REST_FOR_ONE:
        return index > dead;
    }
    return false;
}

/* ---- those who go ---- */

static bool strategy_hold(struct slot *slot)
{
    /* One that is dying already, of its own, comes back with the others all the same. */
    bool dying = slot->wanted && slot->state == LIFECYCLE_KILLING;

    slot->held = slot->held || dying || slot_kill(slot, DEATH_STOP);
    slot_count(slot);
    return slot->held;
}

static unsigned strategy_hold_all(struct cell *cell, const struct slot *dead)
{
    unsigned n = 0;

    for (size_t i = 0; i < cell->size; i++) {
        struct slot *slot = cell->slots[i];
        if (slot != dead &&
            (!dead || strategy_takes(cell->config->strategy, dead->index, slot->index)))
            n += strategy_hold(slot);
    }
    return n;
}

static unsigned strategy_hold_followers(struct group *before)
{
    struct registry *registry = &before->context->registry;
    struct group *group;
    size_t cursor = 0;
    unsigned n = 0, held;

    order_find_followers(registry, before);
    while ((group = registry_next(registry, &cursor))) {
        if (group == before || !group->follows)
            continue;
        held = 0;
        group_each_cell (cell, group) {
            cell->release_due = false;
            held += strategy_hold_all(cell, NULL);
        }
        if (held > 0)
            group_set_pending(group, true);
        n += held;
    }
    return n;
}

void strategy_on_death(struct slot *slot)
{
    struct cell *cell = slot->cell;
    const enum config_strategy strategy = cell->config->strategy;
    char text[128];
    unsigned n;

    if (strategy == CONFIG_ONE_FOR_ONE || !slot->came_up || slot->held)
        return;
    slot->held = true;
    slot_count(slot);
    cell->release_due = false;
    n = strategy_hold_all(cell, slot);
    if (strategy == CONFIG_REST_FOR_ONE)
        n += strategy_hold_followers(cell->group);
    if (n == 0)
        return;
    (void)snprintf(text, sizeof(text), "takes %u other worker%s along (Strategy=%s)", n,
                   n == 1 ? "" : "s",
                   strategy == CONFIG_ONE_FOR_ALL ? "one-for-all" : "rest-for-one");
    slot_tell(slot, LOG_LEVEL_NOTICE, "worker.takes-along", EVENT_ID_TAKES_ALONG, NULL, text);
}

/* ---- and come back ---- */

static void strategy_try(struct cell *cell)
{
    if (!cell->release_due)
        return;
    for (size_t i = 0; i < cell->size; i++)
        if (cell->slots[i]->held && cell->slots[i]->state != LIFECYCLE_BACKOFF)
            return;
    cell->release_due = false;
    for (size_t i = 0; i < cell->size; i++) {
        struct slot *slot = cell->slots[i];
        if (!slot->held)
            continue;
        slot->held = false;
        slot->undecided = true;
        slot_count(slot);
        slot_start_in_turn(slot);
    }
}

static void strategy_release(struct cell *cell)
{
    cell->release_due = true;
    strategy_try(cell);
}

void strategy_on_due(struct slot *slot)
{
    if (!slot->cell->group->pending)
        strategy_release(slot->cell);
}

void strategy_on_down(struct slot *slot)
{
    slot->n_restarts++;
    strategy_try(slot->cell);
}

void strategy_forget(struct slot *slot)
{
    if (!slot->held)
        return;
    slot->held = false;
    slot_count(slot);
    strategy_on_due(slot);
}

bool strategy_release_group(struct group *group)
{
    if (!group->wanted)
        return false;
    group_set_pending(group, false);
    group_each_cell (cell, group)
        strategy_release(cell);
    return true;
}
