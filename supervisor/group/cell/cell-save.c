/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-save.h"

#include "supervisor/group/cell/job-stats-save.h"
#include <errno.h>

void cell_put(struct saved_writer *row, const struct cell *cell)
{
    saved_put_number(row, cell->pool.n_deaths);
    job_stats_put(row, &cell->counts, &cell->history);
}

int cell_get(struct saved_reader *row, struct cell *cell)
{
    cell->pool.n_deaths += saved_get_number(row);
    job_stats_get(row, &cell->counts, &cell->history);
    return row->damaged ? -EBADMSG : 0;
}
