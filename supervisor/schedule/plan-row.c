/* SPDX-License-Identifier: MIT */

/* Writes what schedules have decided to the store. */

#include "supervisor/schedule/plan-private.h"

#include "supervisor/group/group-context.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/store.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Owned by the store. */
struct plan_write {
    struct store_task task;
    struct plan *plan; /* NULL = it has ended */
    bool removes;
    struct schedule_row row;
    char name[CONFIG_SCHEDULE_NAME_MAX + 1];
};

static int apply_write(struct store_task *task, struct database *database)
{
    struct plan_write *write = list_entry(task, struct plan_write, task);

    return setting_rows_put(database, &SCHEDULE_ROWS, write->name,
                            write->removes ? NULL : &write->row);
}

static void on_written(struct store_task *task, int result)
{
    struct plan_write *write = list_entry(task, struct plan_write, task);
    struct plan *plan = write->plan;

    free(write);
    if (!plan)
        return;
    plan->write = NULL;
    /* The job in whose transaction it was has been refused. */
    if (result == -ENOSPC || result == -EIO)
        plan->changed = true;
    if (plan->changed && result != -ECANCELED)
        plan_write_row(plan);
    plan_review(plan); /* a slot is fired after this */
}

static struct plan_write *new_write(const char *name)
{
    struct plan_write *write = calloc(1, sizeof(*write));

    if (!write)
        return NULL;
    write->task = (struct store_task){.apply = apply_write, .done = on_written};
    (void)stpcpy(write->name, name);
    return write;
}

void plan_write_row(struct plan *plan)
{
    struct store *store = plan->context->groups->durable->store;

    plan->changed = true;
    if (plan->write || !store || !plan->known)
        return;
    plan->write = new_write(plan->config->name);
    if (!plan->write)
        return;
    plan->changed = false;
    plan->write->plan = plan;
    plan->write->row = *plan->row;
    store_add(store, &plan->write->task);
}

void plan_write_row_with(struct plan *plan, struct job *job, const struct schedule_row *row)
{
    struct plan_write *write = job->record && plan->known ? new_write(plan->config->name) : NULL;

    if (!write)
        return;
    plan_forget_write(plan); /* the store applies a former write first */
    plan->changed = false;
    plan->write = write;
    write->plan = plan;
    write->row = *row;
    durable_job_join(job, &write->task);
}

bool plan_awaits_row(const struct plan *plan)
{
    const struct store *store = plan->context->groups->durable->store;

    return plan->write && store_state(store) != STORE_FAILED &&
           store_state(store) != STORE_UNUSABLE;
}

void plan_forget_write(struct plan *plan)
{
    if (plan->write)
        plan->write->plan = NULL;
    plan->write = NULL;
}

void plan_remove_row(const struct plan_context *context, const char *name)
{
    struct store *store = context->groups->durable->store;
    struct plan_write *write = store ? new_write(name) : NULL;

    if (!write)
        return;
    write->removes = true;
    store_add(store, &write->task);
}
