/* SPDX-License-Identifier: MIT */

/* Brings back the jobs that the last supervisor has saved for an upgrade. */

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/restore-private.h"
#include "supervisor/job/job-stream.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/succession/record.h"
#include <errno.h>
#include <string.h>

/* Returns the job, if a worker has it in hand; NULL if none has. */
static struct job *find_in_hand(const struct group_context *context, const struct saved_job *saved)
{
    struct job *job = job_by_handle(context->jobs, saved->handle);
    const int64_t number = job && job->record ? durable_job_number(job) : 0;

    return job && job->payload_lost && job->attempt == saved->row.attempt &&
                   number == saved->row.number
               ? job
               : NULL;
}

/* Its row in the database follows. */
static int restore_durable(const struct group_context *context, const struct saved_job *saved,
                           const struct saved_reader *row)
{
    struct job *job = find_in_hand(context, saved);

    if (!job)
        return waiting_room_add(context->durable->inherited, SAVED_JOB_ROW,
                                (uint64_t)saved->row.number, row);
    job_restore_attempts(job, saved->attempts, saved->n_attempts);
    return 0;
}

static int restore_ended(const struct group_context *context, struct group *group,
                         const struct saved_job *saved, struct payload *result)
{
    struct protocol_id id = {.high = saved->id_high, .low = saved->id_low};
    struct job *job;
    int r;

    if (saved->row.name_size < sizeof(id.name))
        memcpy(id.name, saved->row.name, saved->row.name_size);
    r = job_restore(context->jobs, saved->handle, &id, &job);
    if (r != 0)
        return r < 0 ? r : -EEXIST;
    return restore_saved_result(group, job, saved, result);
}

/* A job that is not durable. */
static int restore_whole(const struct group_context *context, const struct saved_job *saved,
                         struct loaded_job *loaded)
{
    const struct job_row *row = &loaded->row;
    struct job *job = find_in_hand(context, saved);
    struct group *group;
    struct cell *cell;
    int r;

    if (job) {
        job_restore_attempts(job, saved->attempts, saved->n_attempts);
        return saved->payload_lost ? cell_complete_ties(job->cell, job, row)
                                   : cell_complete_job(job->cell, job, loaded);
    }
    group = registry_find_text(context->registry, row->group, row->group_size);
    if (group && saved->end != 0)
        return restore_ended(context, group, saved, &loaded->payload);
    cell = group ? group_restore_cell(group, row->key, row->key_size) : NULL;
    r = cell ? cell_resume_job(cell, loaded, saved) : -ENOENT;
    return r > 0 ? -EEXIST : r;
}

/* A job on disk gets its checkpoint when its row is read. */
static int give_checkpoint(const struct group_context *context, const struct saved_job *saved)
{
    struct job *job = saved->has_checkpoint ? job_by_handle(context->jobs, saved->handle) : NULL;
    int r;

    if (!job || !job->cell || (job->record ? durable_job_number(job) : 0) != saved->row.number)
        return 0;
    r = cell_set_checkpoint(job->cell, job, saved->row.checkpoint, saved->row.checkpoint_size);
    if (r == 0 && job->record)
        durable_job_checkpoint(job);
    return r;
}

static int restore_job(const struct group_context *context, const struct saved_job *saved,
                       const struct saved_reader *row)
{
    struct loaded_job loaded = {.row = saved->row, .payload = PAYLOAD_NULL};
    int r;

    if (saved->end == 0)
        job_row_sanitize(&loaded.row);
    loaded.row.payload_size = row->payload_size;
    r = payload_set_lasting(&loaded.payload, row->payload, row->payload_size);
    if (r == 0)
        r = restore_whole(context, saved, &loaded);
    payload_deinit(&loaded.payload);
    return r;
}

int job_restore_row(const struct group_context *context, struct saved_reader *row)
{
    const struct saved_reader whole = *row;
    struct saved_job saved;
    int r;

    record_get(row, &SAVED_JOB_RECORD, &saved);
    if (row->damaged || saved.row.checkpoint_size > PROTOCOL_CHECKPOINT_MAX)
        return -EBADMSG;
    r = saved.row.number != 0 ? restore_durable(context, &saved, &whole)
                              : restore_job(context, &saved, row);
    return r == 0 ? give_checkpoint(context, &saved) : r;
}

int job_item_restore_row(const struct group_context *context, struct saved_reader *row)
{
    struct saved_item saved;
    struct job *job;
    int r;

    record_get(row, &SAVED_ITEM_RECORD, &saved);
    if (row->damaged || saved.data_size > PROTOCOL_ITEM_MAX)
        return -EBADMSG;
    job = job_by_handle(context->jobs, saved.handle);
    if (!job || !job->group) /* it waits on disk only */
        return 0;
    r = job_stream_add(job, &job->group->streams, saved.at, saved.data, saved.data_size);
    if (r == 0)
        job_own_stream(job)->dropped = saved.dropped;
    return r;
}
