/* SPDX-License-Identifier: MIT */

/* Writes what is noted of a durable job. Runs in the storage thread. */

#include "supervisor/store/dead-rows.h"
#include "supervisor/store/durable-job-private.h"
#include "supervisor/store/ended-rows.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/job-to-row.h"
#include <string.h>

int durable_remove_rows(struct database *database, int64_t number)
{
    int r = job_rows_remove(database, number);

    if (r == 0)
        r = ended_rows_remove(database, number);
    return r == 0 ? dead_rows_remove(database, number) : r;
}

static int write_result(struct database *database, const struct durable_job *durable)
{
    struct ended_row row = {
        .number = durable->row.number,
        .group = durable->row.group,
        .group_size = durable->row.group_size,
        .key = durable->row.key,
        .key_size = durable->row.key_size,
        .name = durable->row.name,
        .name_size = durable->row.name_size,
    };

    job_result_to_row(&row, durable->record.job, durable->end);
    return ended_rows_put(database, &row);
}

static int write_letter(struct database *database, const struct durable_job *durable)
{
    const struct job *job = durable->record.job;
    const struct dead_row row = {
        .number = durable->row.number,
        .letter = durable->letter,
        .group = durable->row.group,
        .group_size = durable->row.group_size,
        .key = durable->row.key,
        .key_size = durable->row.key_size,
        .name = durable->row.name,
        .name_size = durable->row.name_size,
        .reason = job->reason,
        .reason_size = job->reason ? (uint32_t)strlen(job->reason) : 0,
        .code = job->code,
        .attempts = job->n_failed,
        .cause = job->failed_by,
        .submitter_uid = job->submitter_uid,
        .created_at = job->created_at,
        .dead_at = job->ended_at,
        .asked = durable->row.asked,
        .payload = payload_data(&job->payload),
        .payload_fd = job->payload.fd,
        .payload_size = job->payload.size,
    };

    return dead_rows_put(database, &row);
}

/* There is no row of the job to remove if it is added by this very task, and never was before. */
static int write_end(struct database *database, const struct durable_job *durable)
{
    const bool fresh = (durable->given & DURABLE_ADD) != 0;
    int r = fresh ? 0 : job_rows_remove(database, durable->row.number);

    if (r == 0 && durable->keeps & DURABLE_RESULT)
        r = write_result(database, durable);
    if (r == 0 && durable->keeps & DURABLE_LETTER)
        r = write_letter(database, durable);
    return r;
}

/* Removes the dead letter that the job replaces, in the transaction that adds the job: one of them
 * is always on disk. The row of the job is there if an earlier try has been written after all. */
static int write_replacement(struct database *database, const struct durable_job *durable)
{
    int r = durable->replaces != 0 ? dead_rows_remove(database, durable->replaces) : 0;

    return r == 0 && durable->replaces != 0 ? job_rows_remove(database, durable->row.number) : r;
}

int durable_write(struct store_task *task, struct database *database)
{
    struct durable_job *durable = list_entry(task, struct durable_job, task);
    int r = durable->given & DURABLE_ADD ? write_replacement(database, durable) : 0;

    if (durable->given == (DURABLE_ADD | DURABLE_END) && r == 0 && durable->row.name_size > 0)
        r = job_rows_check_name(database, &durable->row);
    if (r != 0)
        return r;
    if (durable->given & DURABLE_END)
        return write_end(database, durable);
    if (durable->given & DURABLE_ADD)
        return job_rows_add(database, &durable->row);
    if (durable->given & DURABLE_MOVE)
        r = job_rows_move(database, &durable->row);
    return r < 0 ? r : job_rows_update(database, &durable->row);
}
