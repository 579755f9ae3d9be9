/* SPDX-License-Identifier: MIT */
#include "supervisor/group/job-lookup.h"

#include "supervisor/group/cell/cell-backlog.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-load.h"
#include <stdio.h>

/* The cell in which the job waits; NULL = its group takes no part. */
static struct cell *find_cell(const struct registry *registry, const struct job_row *row)
{
    struct group *group = registry_find_text(registry, row->group, row->group_size);

    if (!group)
        return NULL;
    return group->cell ? group->cell : group_find_cell(group, row->key, row->key_size);
}

/* Returns NULL if there is no such job any more, or no memory for it. */
static struct job *take_job(const struct group_context *context, struct job_load *load)
{
    struct loaded_job *loaded = load->entries[0].job;
    struct job *job = job_by_id(context->jobs, &load->id);
    struct cell *cell = !job && loaded ? find_cell(context->registry, &loaded->row) : NULL;

    /* What its row says of its state is older than that it waits. A cell that was closed has left
     * its jobs on disk. */
    if (cell && cell_backlog_restore(cell, loaded, &job) < 0)
        return NULL;
    return job;
}

static void on_loaded(struct store_task *task, int result)
{
    struct job_load *load = job_load_of(task);
    struct job_lookup *lookup = load->owner;

    if (lookup && result == 0 && lookup->context->durable->restores) {
        store_add(lookup->context->durable->store, task); /* again after the next rows */
        return;
    }
    if (lookup) {
        lookup->load = NULL;
        lookup->found(lookup, result == 0 ? take_job(lookup->context, load) : NULL);
    }
    job_load_free(load);
}

bool job_lookup_begin(struct job_lookup *lookup, const struct group_context *context,
                      const struct protocol_id *id)
{
    struct store *store = context->durable->store;
    struct job_load *load = store ? job_load_new(1) : NULL;

    if (!load)
        return false;
    load->owner = lookup;
    load->by_id = true;
    load->id = *id;
    load->task.done = on_loaded;
    lookup->load = load;
    lookup->context = context;
    store_add(store, &load->task);
    return true;
}

void job_lookup_end(struct job_lookup *lookup)
{
    if (lookup->load)
        lookup->load->owner = NULL;
    lookup->load = NULL;
}
