/* SPDX-License-Identifier: MIT */
#include "shared/base/log.h"
#include "supervisor/context.h"
#include "supervisor/group/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/message/delivery.h"
#include "supervisor/pool/slot-private.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* ---- life of all slots ---- */

struct slot *cell_next_slot(const struct cell *cell, size_t *cursor)
{
    const size_t n = cell->n_slots;
    size_t i;

    while ((i = (*cursor)++) < 2 * n) {
        if (i < n)
            return cell->slots[i];
        if (cell->slots[i - n]->beside)
            return cell->slots[i - n]->beside;
    }
    return i == 2 * n ? cell->aside : NULL;
}

bool cell_is_trimmed(const struct cell *cell)
{
    return cell->n_slots == cell->size;
}

/* For each slot that belongs to the pool, not to its past. */
static void cell_each(struct cell *cell, void (*fn)(struct slot *slot))
{
    for (size_t i = 0; i < cell->size; i++)
        fn(cell->slots[i]);
}

void cell_start(struct cell *cell)
{
    cell->wanted = true;
    cell_each(cell, slot_start);
    cell_watch_idle(cell);
}

void cell_stop(struct cell *cell, bool hurry)
{
    struct slot *slot;
    size_t cursor = 0;

    cell->wanted = false;
    while ((slot = cell_next_slot(cell, &cursor)))
        slot_stop(slot, hurry);
}

void cell_restart(struct cell *cell)
{
    cell->wanted = true;
    replacement_set_stopped(cell, false); /* all of them begin with the program of now */
    cell_each(cell, slot_restart);
    cell_watch_idle(cell);
}

void cell_reset(struct cell *cell)
{
    cell->outcomes = (struct outcomes){0};
    cell_each(cell, slot_reset);
}

/* ---- size ---- */

/* Slots up to `size`, stopped and retired until cell_set_size() wants them. */
int cell_reserve(struct cell *cell, size_t size)
{
    const size_t before = cell->n_slots;
    struct slot **slots;
    int r;

    if (size <= before)
        return 0;
    slots = realloc(cell->slots, size * sizeof(struct slot *));
    if (!slots)
        return -ENOMEM;
    cell->slots = slots;
    while (cell->n_slots < size) {
        r = slot_new(&slots[cell->n_slots], cell, (unsigned)cell->n_slots);
        if (r < 0) {
            while (cell->n_slots > before)
                slot_free(slots[--cell->n_slots]);
            return r;
        }
        slots[cell->n_slots]->retired = true;
        slot_count(slots[cell->n_slots++]);
    }
    return 0;
}

void cell_set_size(struct cell *cell, size_t size)
{
    assert(size <= cell->n_slots);
    cell->size = size;
    for (size_t i = 0; i < cell->n_slots; i++) {
        struct slot *slot = cell->slots[i];
        bool was_retired = slot->retired;
        slot->retired = i >= size;
        slot_count(slot);
        if (slot->retired)
            slot_stop(slot, false);
        else if (was_retired && cell->wanted)
            slot_start(slot); /* what was stopped by itself stays so */
    }
    cell_wake(cell);
}

void cell_trim(struct cell *cell)
{
    while (cell->n_slots > cell->size) {
        struct slot *last = cell->slots[cell->n_slots - 1];
        /* While a predecessor is there, nobody else begins as its namesake. */
        if (!last->retired || !slot_is_down(last) || last->beside ||
            (cell->aside && cell->aside->index == last->index))
            return;
        slot_free(last);
        cell->n_slots--;
    }
}

/* ---- retiring ---- */

/* Somebody has treated it differently from its group: that would be forgotten with it. */
static bool cell_is_special(const struct cell *cell)
{
    return cell->own_size || cell->paused != cell->group->paused ||
           cell->wanted != cell->group->wanted;
}

void cell_watch_idle(struct cell *cell)
{
    usec_t now = cell_now(cell), due = usec_add(cell->idle_since, cell->config->cell_idle);

    if (*cell->key == '\0' || cell->retiring || cell_live_jobs(cell) > 0 || due == USEC_INFINITY ||
        cell_is_special(cell) || timer_armed(&cell->idle_timer))
        return;
    (void)timer_arm(loop_timers(cell->context->loop), &cell->idle_timer, due > now ? due : now);
}

void cell_review(struct cell *cell)
{
    cell_turn_away_misfits(cell);
    cell_wake(cell);
    timer_disarm(loop_timers(cell->context->loop), &cell->idle_timer);
    cell_watch_idle(cell);
}

/* Messages and what the actor is known for would be lost with it. */
static bool actor_is_missed(const struct actor *actor)
{
    return actor &&
           (!delivery_is_quiet(actor) || !list_empty(&actor->names) ||
            !list_empty(&actor->schedules) || !list_empty(&actor->subscriptions.subscriptions));
}

static bool cell_is_quiet(const struct cell *cell)
{
    if (actor_is_missed(cell->actor))
        return false;
    for (size_t i = 0; i < cell->n_slots; i++)
        if (actor_is_missed(cell->slots[i]->actor))
            return false;
    return true;
}

void cell_on_idle_timer(struct timer *timer, usec_t now)
{
    struct cell *cell = list_entry(timer, struct cell, idle_timer);

    if (cell_live_jobs(cell) > 0 || cell_is_special(cell))
        return;
    if (!cell_is_quiet(cell))
        cell->idle_since = now;
    if (usec_add(cell->idle_since, cell->config->cell_idle) > now) {
        cell_watch_idle(cell);
        return;
    }
    log_debug("%s has been idle for CellIdleSec=: its workers stop", cell->name);
    group_set_retiring(cell, true);
    cell_set_size(cell, 0);
}

int cell_call_back(struct cell *cell)
{
    int r = cell_reserve(cell, cell->group->size);

    if (r < 0)
        return r;
    group_set_retiring(cell, false);
    cell_set_size(cell, cell->group->size);
    return 0;
}
