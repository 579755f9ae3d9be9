/* SPDX-License-Identifier: MIT */
#include "supervisor/control/actors/stored-letters.h"

#include "supervisor/control/control-context.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/removal.h"
#include "supervisor/varlink/request.h"
#include <errno.h>

static bool are_coming(const struct durable_jobs *durable)
{
    return durable->letters_unread && durable->store && durable_jobs_are_unread(durable);
}

static void drop(struct request *request)
{
    request->state = removal_wait_free(request->state);
}

/* Looks again each time that the store has read something. */
static void on_turn(void *userdata, int result)
{
    struct request *request = userdata;

    (void)result;
    drop(request);
    request->drop = NULL;
    request->method->call(request);
}

bool control_await_letters(struct request *request)
{
    const struct durable_jobs *durable = request->context->durable;

    if (!are_coming(durable))
        return false;
    request->state = removal_await(durable->store, on_turn, request);
    if (request->state)
        request->drop = drop;
    else
        request_internal(request, -ENOMEM);
    return true;
}

const char *control_letters_problem(const struct request *request)
{
    const struct control_context *context = request->context;

    return context->durable->letters_unread ? job_lookup_problem(context->groups) : NULL;
}
