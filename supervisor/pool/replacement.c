/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/replacement.h"

#include "shared/base/log.h"
#include "supervisor/context.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/stand-in.h"
#include "supervisor/pool/slot-private.h"
#include "supervisor/pool/spare.h"
#include <stdio.h>

/* ---- what is said about it ---- */

static void tell_replaced(struct slot *old, const struct slot *successor)
{
    char text[160];

    (void)snprintf(text, sizeof(text), "is replaced by generation %llu: %s",
                   (unsigned long long)successor->generation, old->wish_reason);
    slot_tell(old, LOG_LEVEL_INFO, "worker.recycled", NULL, NULL, text);
}

/* ---- wishes ---- */

void replacement_wish(struct slot *slot, const char *reason)
{
    struct replacement *replacement = &slot->cell->replacement;

    if (slot->role != SLOT_MEMBER || slot->retired || list_linked(&slot->wish_link) ||
        replacement->old == slot)
        return;
    slot->wish_reason = reason;
    list_push_back(&replacement->wishes, &slot->wish_link);
    cell_wake(slot->cell);
}

/* The successor does not take the place: its generation is that of nobody else for all that. */
static void replacement_part(struct cell *cell)
{
    cell->replacement.old->tried = cell->aside->generation;
    cell->replacement.old = NULL;
    cell->aside->role = SLOT_PREDECESSOR;
    slot_count(cell->aside);
}

/* The successor is no longer waited for. */
static void replacement_abandon(struct cell *cell)
{
    if (!cell->replacement.old)
        return;
    replacement_part(cell);
    slot_stop(cell->aside, true);
    cell_wake(cell);
}

void replacement_forget(struct slot *slot)
{
    struct replacement *replacement = &slot->cell->replacement;

    list_unlink(&slot->wish_link);
    slot->rolls = false;
    if (replacement->old == slot)
        replacement_abandon(slot->cell);
    if (replacement->in_place == slot)
        replacement->in_place = NULL;
    if (replacement->rolling)
        cell_wake(slot->cell);
}

void replacement_set_stopped(struct cell *cell, bool stopped)
{
    cell->group->n_behind += stopped;
    cell->group->n_behind -= cell->replacement.stopped;
    cell->replacement.stopped = stopped;
}

void replacement_roll(struct cell *cell)
{
    struct replacement *replacement = &cell->replacement;

    replacement->rolling = true;
    replacement_set_stopped(cell, false);
    replacement->n_failed = 0;
    timer_disarm(loop_timers(cell->context->loop), &replacement->retry);
    replacement->in_place = NULL;
    replacement_abandon(cell); /* of the program before */
    for (size_t i = 0; i < cell->size; i++) {
        struct slot *slot = cell->slots[i];
        spare_dismiss(slot, false);
        if (slot_is_up(slot)) {
            slot->rolls = true;
            slot->wish_reason = "its program has changed";
            replacement_wish(slot, slot->wish_reason);
        } else if (slot->wanted) {
            slot_restart(slot);
        }
    }
    cell_wake(cell);
}

/* How many are not replaced. */
static size_t replacement_halt(struct cell *cell)
{
    struct slot *old = cell->replacement.old;
    size_t n = 0;

    if (!cell->replacement.rolling)
        return 0;
    cell->replacement.rolling = false;
    replacement_set_stopped(cell, true);
    if (old && old->rolls)
        replacement_abandon(cell);
    for (size_t i = 0; i < cell->n_slots; i++) {
        struct slot *slot = cell->slots[i];
        n += slot->rolls;
        if (slot->rolls)
            list_unlink(&slot->wish_link);
        slot->rolls = false;
    }
    return n;
}

/* In all cells: they would fail the same way. */
static void replacement_stop_roll(struct cell *failed)
{
    char text[160];
    size_t n = 0;

    group_each_cell (cell, failed->group)
        n += replacement_halt(cell);
    (void)snprintf(text, sizeof(text),
                   "is not rolled on: a new worker did not come up; %zu go on as they are, reload "
                   "to try again",
                   n);
    cell_tell(failed, LOG_LEVEL_ERROR, "group.roll-stopped", EVENT_ID_ROLL_STOPPED, text);
}

/* ---- successors ---- */

static void replacement_retry_later(struct cell *cell)
{
    struct replacement *replacement = &cell->replacement;
    const struct backoff_policy policy = {
        .min = cell->config->min, .max = cell->config->max, .random = cell->config->random};
    usec_t delay = backoff_delay(&policy, replacement->n_failed++, &cell->context->random);

    (void)timer_arm(loop_timers(cell->context->loop), &replacement->retry,
                    usec_add(cell_now(cell), delay));
}

static void replacement_on_retry(struct timer *timer, usec_t now)
{
    (void)now;
    cell_wake(list_entry(timer, struct cell, replacement.retry));
}

/* The old one goes on working. */
static void replacement_failed(struct cell *cell, struct slot *old)
{
    slot_tell(old, LOG_LEVEL_WARNING, "worker.not-recycled", EVENT_ID_NOT_RECYCLED, NULL,
              "is not replaced: its successor did not come up; it goes on working");
    if (old->rolls) {
        replacement_stop_roll(cell);
        return;
    }
    list_push_front(&cell->replacement.wishes, &old->wish_link);
    replacement_retry_later(cell);
}

static void replacement_start_successor(struct cell *cell, struct slot *old)
{
    struct slot *successor;

    if (slot_new(&successor, cell, old->index) < 0) {
        replacement_failed(cell, old);
        return;
    }
    successor->role = SLOT_SUCCESSOR;
    successor->generation = old->generation;
    successor->tried = old->tried;
    successor->born = old->born;
    successor->twin = !old->twin;
    slot_count(successor);
    if (successor->actor)
        stand_in_set(successor->actor, old->actor);
    cell->aside = successor;
    cell->replacement.old = old;
    slot_start(successor);
}

/* Its spare is its successor, if it is one; who else is beside the place has to go first. Whether
 * there is something to wait for. */
static bool replacement_by_spare(struct cell *cell, struct slot *slot)
{
    if (!spare_is_ready(slot)) {
        spare_dismiss(slot, false);
        list_push_front(&cell->replacement.wishes, &slot->wish_link);
        return true;
    }
    tell_replaced(slot, slot->beside);
    slot->n_recycled++;
    spare_take_over(slot);
    slot_stop(slot, false);
    return false;
}

/* Whether there is something to wait for now. */
static bool replacement_begin(struct cell *cell, struct slot *slot)
{
    list_unlink(&slot->wish_link);
    if (!slot_is_up(slot)) {
        slot->rolls = false; /* it gets a new process anyhow */
        return false;
    }
    if (slot->beside)
        return replacement_by_spare(cell, slot);
    if (slot_is_actor(slot)) {
        replacement_start_successor(cell, slot);
    } else {
        slot_restart(slot);
        cell->replacement.in_place = slot;
    }
    return true;
}

static void replacement_review_roll(struct cell *cell)
{
    struct replacement *replacement = &cell->replacement;

    if (!replacement->rolling || !list_empty(&replacement->wishes))
        return;
    replacement->rolling = false;
    if (!cell->wanted)
        return;
    cell_tell(cell, LOG_LEVEL_NOTICE, "group.rolled", NULL, "runs its new program everywhere");
}

/* The chair beside the pool is free. Its place may be gone, too. */
static void replacement_clear(struct cell *cell)
{
    const unsigned index = cell->aside->index;

    cell->aside = slot_free(cell->aside);
    if (index < cell->n_slots)
        spare_review(cell->slots[index]);
}

void replacement_step(struct cell *cell)
{
    struct replacement *replacement = &cell->replacement;
    struct list *node;

    if (cell->aside && !replacement->old && slot_is_down(cell->aside))
        replacement_clear(cell);
    while (!cell->aside && !replacement->in_place && !timer_armed(&replacement->retry)) {
        node = list_first(&replacement->wishes);
        if (!node) {
            replacement_review_roll(cell);
            return;
        }
        if (replacement_begin(cell, list_entry(node, struct slot, wish_link)))
            return;
    }
}

void replacement_give_place(struct slot *old, struct slot *successor)
{
    old->cell->slots[old->index] = successor;
    successor->role = SLOT_MEMBER;
    successor->tried = old->tried < old->generation ? old->generation : old->tried;
    restart_move(&successor->tally, &old->tally);
    successor->n_restarts = old->n_restarts;
    successor->n_recycled = old->n_recycled;
    death_unref(successor->last_death);
    successor->last_death = old->last_death;
    old->last_death = NULL;
    old->role = SLOT_PREDECESSOR;
    old->retired = true;
    old->rolls = false;
    list_unlink(&old->wish_link);
    list_unlink(&old->review_link);
    slot_count(old);
    slot_count(successor);
    slot_swap_actors(old, successor);
    slot_health_inherit(successor, old);
}

static void replacement_swap(struct cell *cell)
{
    struct slot *old = cell->replacement.old, *successor = cell->aside;

    cell->aside = old;
    cell->replacement.old = NULL;
    cell->replacement.n_failed = 0;
    replacement_give_place(old, successor);
}

void replacement_on_ready(struct slot *slot)
{
    struct cell *cell = slot->cell;
    struct slot *old = cell->replacement.old;

    if (cell->replacement.in_place == slot) {
        cell->replacement.in_place = NULL;
        slot->rolls = false;
        cell_wake(cell);
    }
    if (slot->role != SLOT_SUCCESSOR)
        return;
    replacement_swap(cell);
    slot->n_recycled++;
    tell_replaced(old, slot);
    slot_stop(old, false);
}

void replacement_on_failure(struct slot *slot)
{
    struct cell *cell = slot->cell;
    struct slot *old = cell->replacement.old;

    if (cell->replacement.in_place == slot) {
        cell->replacement.in_place = NULL;
        replacement_stop_roll(cell);
    }
    if (slot->role != SLOT_SUCCESSOR)
        return;
    slot->wanted = false;
    replacement_part(cell);
    replacement_failed(cell, old);
}

bool replacement_take_over(struct slot *slot)
{
    struct cell *cell = slot->cell;

    if (cell->replacement.old != slot)
        return false;
    replacement_swap(cell);
    slot->wanted = false;
    return true;
}

void replacement_init(struct cell *cell)
{
    list_init(&cell->replacement.wishes);
    timer_init(&cell->replacement.retry, replacement_on_retry);
}

void replacement_deinit(struct cell *cell)
{
    replacement_set_stopped(cell, false);
    timer_disarm(loop_timers(cell->context->loop), &cell->replacement.retry);
    cell->aside = slot_free(cell->aside);
}
