/* SPDX-License-Identifier: MIT */
/* Retires keyed cells without jobs for CellIdleSec=. */

#include "shared/base/log.h"
#include "supervisor/group/cell/cell-command.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/pool/slot/slot.h"

bool cell_has_own_size(const struct cell *cell)
{
    return !cell_is_retiring(cell) && !config_is_elastic(cell->config) &&
           cell->pool.size != cell->group->size;
}

/* Whether the cell was paused, stopped or resized on its own. Retiring it would undo that. */
static bool cell_is_special(const struct cell *cell)
{
    return cell_has_own_size(cell) || cell->pause != cell->group->pause ||
           cell->pool.wanted != cell->group->wanted;
}

void cell_watch_idle(struct cell *cell)
{
    usec_t now = cell_now(cell), due = usec_add(cell->idle_since, cell->config->cell_idle);

    if (*cell->key == '\0' || cell_is_retiring(cell) || cell->counts.n[JOBS_LIVE] > 0 ||
        due == USEC_INFINITY || cell_is_special(cell) || timer_armed(&cell->idle_timer))
        return;
    timer_arm(cell_timers(cell), &cell->idle_timer, due > now ? due : now);
}

void cell_review(struct cell *cell)
{
    cell_turn_away_misfits(cell);
    cell_wake(cell);
    timer_disarm(cell_timers(cell), &cell->idle_timer);
    cell_watch_idle(cell);
}

bool cell_actor_is_missed(const struct actor *actor)
{
    return actor &&
           (!delivery_is_quiet(actor) || !list_empty(&actor->names) ||
            schedule_count_for(actor) > 0 || !list_empty(&actor->subscriptions.subscriptions));
}

static bool cell_is_quiet(const struct cell *cell)
{
    if (cell_actor_is_missed(cell->pool.actor))
        return false;
    for (size_t i = 0; i < cell->pool.n_slots; i++)
        if (cell_actor_is_missed(cell->pool.slots[i]->actor))
            return false;
    return true;
}

void cell_retire(struct cell *cell)
{
    cell->pool.retiring = true;
    pool_set_size(&cell->pool, 0);
    cell_keep(cell);
}

void cell_on_idle_timer(struct timer *timer, usec_t now)
{
    struct cell *cell = list_entry(timer, struct cell, idle_timer);

    cell_catch_up(cell);
    if (cell->counts.n[JOBS_LIVE] > 0 || cell_is_special(cell))
        return;
    if (!cell_is_quiet(cell))
        cell->idle_since = now;
    if (usec_add(cell->idle_since, cell->config->cell_idle) > now) {
        cell_watch_idle(cell);
        return;
    }
    log_debug("%s has been idle for CellIdleSec=: its workers stop", cell->name);
    cell_retire(cell);
}

int cell_call_back(struct cell *cell)
{
    int r = pool_reserve(&cell->pool, cell->group->size);

    if (r < 0)
        return r;
    cell->pool.retiring = false;
    pool_set_size(&cell->pool, cell->group->size);
    cell_keep(cell);
    return 0;
}
