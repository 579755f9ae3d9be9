/* SPDX-License-Identifier: MIT */
#include "supervisor/control/actors/stored-letters.h"

#include "supervisor/control/control-context.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/varlink/request.h"
#include <errno.h>
#include <stdlib.h>

/* Looks again each time that the store has read something. */
struct wait {
    struct store_task task;
    bool added;              /* the store has the task */
    struct request *request; /* NULL = it has ended */
};

static int read_nothing(struct store_task *task, struct database *database)
{
    (void)task;
    (void)database;
    return 0;
}

static bool are_coming(const struct durable_jobs *durable)
{
    return durable->letters_unread && durable->store && durable_jobs_are_unread(durable);
}

static void add(struct wait *wait, const struct durable_jobs *durable)
{
    wait->added = true;
    store_add(durable->store, &wait->task);
}

static void on_turn(struct store_task *task, int result)
{
    struct wait *wait = list_entry(task, struct wait, task);
    struct request *request = wait->request;

    wait->added = false;
    if (!request) {
        free(wait);
        return;
    }
    if (result == -ECANCELED) /* what waits is told why it ends */
        return;
    if (result == 0 && are_coming(request->context->durable)) {
        add(wait, request->context->durable);
        return;
    }
    request->state = NULL;
    request->drop = NULL;
    free(wait);
    request->method->call(request);
}

static void drop(struct request *request)
{
    struct wait *wait = request->state;

    wait->request = NULL;
    if (!wait->added || store_cancel(request->context->durable->store, &wait->task))
        free(wait);
}

bool control_await_letters(struct request *request)
{
    struct wait *wait;

    if (!are_coming(request->context->durable))
        return false;
    wait = request_allocate(request, sizeof(*wait));
    if (!wait)
        return true;
    wait->request = request;
    list_init(&wait->task.link);
    wait->task.apply = read_nothing;
    wait->task.done = on_turn;
    request->state = wait;
    request->drop = drop;
    add(wait, request->context->durable);
    return true;
}

const char *control_letters_problem(const struct request *request)
{
    const struct control_context *context = request->context;

    return context->durable->letters_unread ? job_lookup_problem(context->groups) : NULL;
}
