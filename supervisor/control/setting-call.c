/* SPDX-License-Identifier: MIT */
#include "supervisor/control/setting-call.h"

#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A change that is being written. The store owns it until then. */
struct pending_set {
    struct store_task task;
    struct setting_call call;
    char name[];
};

static const struct limit_row *row_of(const struct setting_call *call)
{
    return call->removes ? NULL : &call->row;
}

static int apply(struct store_task *task, struct database *database)
{
    const struct setting_call *call = &list_entry(task, struct pending_set, task)->call;

    return setting_rows_put(database, call->settings->rows, call->name, row_of(call));
}

static void answer(struct request *request, const struct setting_call *call, int r)
{
    const char *problem = store_problem(call->context->durable->store);

    request->state = NULL;
    request->drop = NULL;
    if (r == 0)
        call->end(request);
    else
        request_fail_string(request, "NotKept", "problem",
                            *problem != '\0' ? problem : strerror(-r));
}

static void on_written(struct store_task *task, int result)
{
    struct pending_set *set = list_entry(task, struct pending_set, task);
    const struct setting_call *call = &set->call;
    int r = result;

    if (r == 0)
        r = settings_set(call->settings, call->name, row_of(call));
    if (r == 0)
        call->take_effect(call);
    if (call->request)
        answer(call->request, call, r);
    free(set);
}

static void drop(struct request *request)
{
    struct pending_set *set = request->state;

    set->call.request = NULL;
}

void control_set(struct request *request, const struct setting_call *call)
{
    struct control_context *context = request->context;
    const char *problem = context->want_store(context->userdata);
    struct pending_set *set;

    if (problem) {
        request_fail_string(request, "NotKept", "problem", problem);
        return;
    }
    set = calloc(1, sizeof(*set) + strlen(call->name) + 1);
    if (!set) {
        request_internal(request, -ENOMEM);
        return;
    }
    set->task = (struct store_task){.addition = !call->removes, .apply = apply, .done = on_written};
    set->call = *call;
    set->call.name = strcpy(set->name, call->name);
    set->call.context = context;
    set->call.request = request;
    request->state = set;
    request->drop = drop;
    store_add(context->durable->store, &set->task);
}
