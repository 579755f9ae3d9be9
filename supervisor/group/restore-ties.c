/* SPDX-License-Identifier: MIT */
/* Counts durable jobs that are tied to others, before the jobs are read: see job/job-ties.h. */

#include "shared/base/log.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/restore-private.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/removal.h"
#include <inttypes.h>

int restore_take_ties(struct restore *restore, struct loaded_job *loaded)
{
    struct job_table *jobs = restore->context->jobs;
    const struct job_row *row = &loaded->row;
    struct tie_list list;

    if (row->number >= restore->end) /* of this run */
        return 0;
    if (restore->after_key == ROWS_TIED && tie_list_read(&list, row->ties, row->ties_size) == 0)
        return ties_expect(jobs, &list);
    if (restore->after_key == ROWS_TIED)
        log_error("what durable job %" PRId64 " waits for cannot be read: its row is damaged",
                  row->number);
    else if (!job_state_is_end(row->state) || !ties_expect_end(jobs, row->number, row->state))
        removal_add(restore->context->durable->store, row->number, ROWS_FATE);
    return 0;
}

void restore_settle_ties(const struct restore *restore)
{
    const size_t n = ties_settle(restore->context->jobs, true);

    if (n > 0)
        log_error("%zu durable jobs, for which others wait, are unknown: they count as cancelled",
                  n);
}
