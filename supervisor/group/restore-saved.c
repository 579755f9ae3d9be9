/* SPDX-License-Identifier: MIT */

/* Brings back what the last supervisor has saved for an upgrade. */

#include "shared/base/log.h"
#include "supervisor/group/cell/cell-restore.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/restore-private.h"
#include "supervisor/store/identity-rows.h"
#include "supervisor/store/saved-rows.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct saved {
    const struct group_context *context;
    struct database *database;
    uint64_t n_lost; /* jobs that could not be brought back */
};

/* Returns the job of the row, if a worker has it in hand; NULL if none has. */
static struct job *find_in_hand(const struct saved *saved, const struct job_row *row,
                                const struct identity_row *identity)
{
    struct job *job = job_by_handle(saved->context->jobs, identity->handle);

    return job && job->restored && !job->record && job->attempt == row->attempt ? job : NULL;
}

/* Returns 0, or another value if the job is lost. */
static int restore_job(const struct saved *saved, struct loaded_job *loaded,
                       const struct identity_row *identity)
{
    const struct job_row *row = &loaded->row;
    struct job *job = find_in_hand(saved, row, identity);
    struct group *group;
    struct cell *cell;

    if (job)
        return cell_complete_job(job->cell, job, loaded);
    group = registry_find_text(saved->context->registry, row->group, row->group_size);
    cell = group ? group_restore_cell(group, row->key, row->key_size) : NULL;
    return cell ? cell_resume_job(cell, loaded, identity) : -ENOENT;
}

/* As job_row_fn: the row has no payload yet. */
static int read_job(void *userdata, const struct job_row *row)
{
    struct saved *saved = userdata;
    struct job_load *load = job_load_new(1);
    struct identity_row identity;
    int r;

    if (!load)
        return -ENOMEM;
    load->entries[0].number = row->number;
    r = load->task.apply(&load->task, saved->database);
    if (r == 0)
        r = identity_rows_fetch(saved->database, row->number, &identity);
    if (r == 0 && (!load->entries[0].job || restore_job(saved, load->entries[0].job, &identity)))
        saved->n_lost++;
    job_load_free(load);
    return r;
}

/* As saved_row_fn. */
static int read_whole_job(void *userdata, struct saved_reader *row)
{
    struct saved *saved = userdata;
    struct loaded_job loaded = {.row = JOB_ROW_NULL, .payload = PAYLOAD_NULL};
    struct identity_row identity = {0};
    int r;

    identity_get(row, &identity);
    r = job_row_get(row, &loaded.row);
    if (r == 0)
        r = payload_set(&loaded.payload, row->payload, row->payload_size);
    loaded.row.payload_size = row->payload_size;
    if (r < 0 || restore_job(saved, &loaded, &identity) != 0)
        saved->n_lost++;
    payload_deinit(&loaded.payload);
    return 0;
}

/* Returns 0 or -errno. */
static int restore_results(struct restore *restore)
{
    struct restore_chunk *chunk = restore->chunk;
    int r;

    do {
        chunk->n = 0;
        r = restore_read_results(chunk, restore->saved);
        if (r == 0)
            restore_take_results(restore);
    } while (r == 0 && chunk->n == RESTORE_RESULTS_MAX);
    return r;
}

/* Restores what has ended and is kept. Returns 0 or -errno. */
static int restore_ended(const struct group_context *context, struct database *database)
{
    struct restore restore = {
        .context = context,
        .chunk = calloc(1, sizeof(*restore.chunk)),
        .saved = database,
    };
    int r;

    if (!restore.chunk)
        return -ENOMEM;
    list_init(&restore.chunk->copies);
    restore.chunk->end = INT64_MAX;
    r = restore_results(&restore);
    restore_free_copies(restore.chunk);
    free(restore.chunk);
    return r;
}

int restore_saved(const struct group_context *context, struct database *database)
{
    struct saved saved = {.context = context, .database = database};
    uint64_t n_refused = 0;
    int r = restore_ended(context, database);

    if (r == 0)
        r = job_rows_scan(database, 0, UINT_MAX, read_job, &saved); /* an older version's */
    if (r == 0)
        r = saved_rows_scan(database, WHOLE_JOB_ROW, read_whole_job, &saved, &n_refused);
    saved.n_lost += n_refused;
    if (saved.n_lost > 0)
        log_error("%" PRIu64 " jobs are lost in the upgrade: their groups are gone, or there is "
                  "no memory",
                  saved.n_lost);
    return r;
}
