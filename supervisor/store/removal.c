/* SPDX-License-Identifier: MIT */
#include "supervisor/store/removal.h"

#include "supervisor/store/store.h"
#include <stdlib.h>

struct removal {
    struct store_task task;
    int64_t number;
    int (*remove)(struct database *database, int64_t number);
};

static int removal_apply(struct store_task *task, struct database *database)
{
    struct removal *removal = list_entry(task, struct removal, task);

    return removal->remove(database, removal->number);
}

static void removal_done(struct store_task *task, int result)
{
    (void)result;
    free(list_entry(task, struct removal, task));
}

void removal_add(struct store *store, int64_t number,
                 int (*remove)(struct database *database, int64_t number))
{
    struct removal *removal = store ? malloc(sizeof(*removal)) : NULL;

    if (!removal)
        return;
    *removal = (struct removal){
        .task = {.apply = removal_apply, .done = removal_done, .urgency = STORE_LAZY},
        .number = number,
        .remove = remove,
    };
    list_init(&removal->task.link);
    store_add(store, &removal->task);
}
