/* SPDX-License-Identifier: MIT */
/* Counters of a cell that its group sums, and the word for its state. */

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include <string.h>

void cell_add_running(struct cell *cell, int change)
{
    cell->n_running += (uint64_t)(int64_t)change;
    cell->group->n_running += (uint64_t)(int64_t)change;
}

void cell_add_backoff(struct cell *cell, int change)
{
    cell->n_backoff += (uint64_t)(int64_t)change;
    cell->group->n_backoff += (uint64_t)(int64_t)change;
}

void cell_add_waiter(struct cell *cell, int change)
{
    cell->n_waiters += (uint64_t)(int64_t)change;
    cell->group->n_waiters += (uint64_t)(int64_t)change;
}

const char *cell_state(const struct cell *cell)
{
    const char *state = census_state(&cell->pool.census, cell->paused);
    bool down = census_down(&cell->pool.census) || strcmp(state, "stopping") == 0;

    if (cell->retiring)
        return "retiring";
    return !down && outcomes_failing(&cell->outcomes) ? "failing" : state;
}
