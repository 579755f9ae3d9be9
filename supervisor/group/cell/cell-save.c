/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-save.h"

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/job-stats-save.h"
#include "supervisor/group/group.h"
#include <errno.h>

void cell_put(struct saved_writer *row, const struct cell *cell)
{
    saved_put_number(row, cell->config->size);
    saved_put_number(row, cell->own_size ? cell->pool.size : 0);
    saved_put_number(row, cell->paused && !cell->held_back);
    saved_put_number(row, cell->idle_since);
    saved_put_number(row, cell->pool.n_deaths);
    job_stats_put(row, &cell->counts, &cell->history);
}

/* Another Size= in the file replaces an earlier resize, as in a reload. */
static int get_size(struct saved_reader *row, struct cell *cell)
{
    const uint64_t configured = saved_get_number(row);
    const size_t size = (size_t)saved_get_below(row, GROUP_SIZE_MAX);
    int r;

    if (size == 0 || configured != cell->config->size)
        return 0;
    r = pool_reserve(&cell->pool, size);
    if (r < 0)
        return r;
    cell->own_size = true;
    pool_set_size(&cell->pool, size);
    return 0;
}

int cell_get(struct saved_reader *row, struct cell *cell)
{
    int r = get_size(row, cell);

    if (r < 0)
        return r;
    cell_set_paused(cell, saved_get_below(row, 1));
    cell->idle_since = saved_get_below(row, cell_now(cell));
    cell->pool.n_deaths += saved_get_number(row);
    job_stats_get(row, &cell->counts, &cell->history);
    return row->damaged ? -EBADMSG : 0;
}

void cell_put_plan(struct saved_writer *row, const struct cell *cell)
{
    saved_put_number(row, cell->pool.wanted);
    saved_put_number(row, cell->retiring);
}

void cell_get_plan(struct saved_reader *row, struct cell *cell)
{
    cell->pool.wanted = saved_get_below(row, 1);
    if (saved_get_below(row, 1))
        cell_retire(cell);
    else
        cell_watch_idle(cell);
}
