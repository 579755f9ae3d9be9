/* SPDX-License-Identifier: MIT */
#include "supervisor/group/job-lookup.h"

#include "supervisor/group/cell/cell-backlog.h"
#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-load.h"
#include <errno.h>

int job_lookup_take(const struct group_context *context, struct loaded_job *loaded,
                    struct job **ret)
{
    const struct job_row *row = &loaded->row;
    const struct group *group = registry_find_text(context->registry, row->group, row->group_size);
    struct cell *cell;

    if (!group)
        return CELL_E_MISSING; /* no group is in charge of the row */
    cell = group->cell ? group->cell : group_find_cell(group, row->key, row->key_size);
    /* A cell that has left its jobs on disk retires. */
    if (group->closed || (cell && group_cell_closed(cell)))
        return CELL_E_ON_DISK;
    /* The row predates the job's return to the queue. */
    return cell ? cell_backlog_restore(cell, loaded, ret) : CELL_E_MISSING;
}

static int take_job(const struct group_context *context, struct job_load *load, struct job **ret)
{
    struct loaded_job *loaded = load->entries[0].job;

    *ret = job_by_id(context->jobs, &load->id);
    if (*ret)
        return 0;
    return loaded ? job_lookup_take(context, loaded, ret) : CELL_E_MISSING;
}

static void report(struct job_lookup *lookup, struct job_load *load, int result)
{
    const struct group_context *context = lookup->context;
    const struct durable_jobs *durable = context->durable;
    /* A store that has failed may have rows that it does not find. */
    const bool may_exist = load->entries[0].job || load->has_result || durable->unreadable;
    struct job *job = NULL;
    int r = result == -ENOMEM ? result
            : result < 0      ? CELL_E_STORE_FAILED
                              : take_job(context, load, &job);

    if (r == CELL_E_MISSING || r == CELL_E_EXISTS)
        r = may_exist && durable->incomplete ? CELL_E_STORE_FAILED : 0;
    lookup->load = NULL;
    lookup->found(lookup, r == 0 ? job : NULL, r);
}

static void on_loaded(struct store_task *task, int result)
{
    struct job_load *load = job_load_of(task);
    struct job_lookup *lookup = load->owner;
    struct durable_jobs *durable = lookup ? lookup->context->durable : NULL;

    if (lookup && result == 0 && !durable_jobs_are_known(durable) &&
        store_state(durable->store) == STORE_FAILED)
        result = -EIO; /* what it has found is not conclusive */
    if (lookup && result == 0 && !durable_jobs_are_known(durable)) {
        durable_jobs_ask_later(durable, task);
        return;
    }
    if (lookup && result == -ECANCELED)
        lookup->load = NULL; /* what waits is told why it ends */
    else if (lookup)
        report(lookup, load, result);
    job_load_free(load);
}

int job_lookup_begin(struct job_lookup *lookup, const struct group_context *context,
                     const struct protocol_id *id, uid_t asker)
{
    struct store *store = context->durable->store;
    struct job_load *load;

    if (!store && !context->durable->incomplete)
        return CELL_E_MISSING;
    /* Otherwise it would only wait until the store works again. */
    if (!store || store_state(store) == STORE_FAILED || store_state(store) == STORE_UNUSABLE)
        return CELL_E_STORE_FAILED;
    load = job_load_new(1);
    if (!load)
        return -ENOMEM;
    load->owner = lookup;
    load->kind = LOAD_ID;
    load->id = *id;
    load->task.query = true;
    load->task.asker = asker;
    load->task.impatient = true;
    load->task.done = on_loaded;
    lookup->load = load;
    lookup->context = context;
    store_add(store, &load->task);
    return 0;
}

void job_lookup_end(struct job_lookup *lookup)
{
    if (lookup->load)
        job_load_leave(lookup->load, lookup->context->durable->store);
    lookup->load = NULL;
}

const char *job_lookup_problem(const struct group_context *context)
{
    const struct store *store = context->durable->store;

    if (store && store_state(store) == STORE_OPENING)
        return STORE_OPENING_TEXT;
    if (store && *store_problem(store) != '\0')
        return store_problem(store);
    return "not all durable jobs could be read from disk: the log says why, and the next start "
           "reads them again";
}
