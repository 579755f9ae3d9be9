/* SPDX-License-Identifier: MIT */
#include "supervisor/store/removal.h"

#include "supervisor/store/job-rows.h"
#include "supervisor/store/store.h"
#include <errno.h>
#include <stdlib.h>

struct removal {
    struct store_task task;
    int64_t number;
    unsigned tables;
};

static int removal_apply(struct store_task *task, struct database *database)
{
    struct removal *removal = list_entry(task, struct removal, task);

    return job_rows_remove(database, removal->tables, removal->number);
}

static void removal_done(struct store_task *task, int result)
{
    free(list_entry(task, struct removal, task));
}

void removal_add(struct store *store, int64_t number, unsigned tables)
{
    struct removal *removal = store ? malloc(sizeof(*removal)) : NULL;

    if (!removal)
        return;
    *removal = (struct removal){
        .task = {.apply = removal_apply, .done = removal_done, .urgency = STORE_LAZY},
        .number = number,
        .tables = tables,
    };
    store_add(store, &removal->task);
}

struct removal_wait {
    struct store_task task;
    struct store *store;
    bool added;                               /* the store has the task */
    void (*done)(void *userdata, int result); /* NULL = the caller has gone */
    void *userdata;
};

static int wait_apply(struct store_task *task, struct database *database)
{
    return 0;
}

static void wait_done(struct store_task *task, int result)
{
    struct removal_wait *wait = list_entry(task, struct removal_wait, task);

    wait->added = false;
    if (!wait->done)
        free(wait);
    else if (result != -ECANCELED)
        wait->done(wait->userdata, result);
}

struct removal_wait *removal_await(struct store *store, bool impatient,
                                   void (*done)(void *userdata, int result), void *userdata)
{
    struct removal_wait *wait = malloc(sizeof(*wait));

    if (!wait)
        return NULL;
    *wait = (struct removal_wait){
        .task = {.apply = wait_apply, .done = wait_done, .impatient = impatient},
        .store = store,
        .added = true,
        .done = done,
        .userdata = userdata,
    };
    store_add(store, &wait->task);
    return wait;
}

struct removal_wait *removal_wait_free(struct removal_wait *wait)
{
    if (!wait)
        return NULL;
    wait->done = NULL;
    if (!wait->added || store_cancel(wait->store, &wait->task))
        free(wait);
    return NULL;
}
