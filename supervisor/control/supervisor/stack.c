/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: GetStack. */

#include "supervisor/control/access.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/jobs.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/event/death.h"
#include "supervisor/group/group.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/tracer.h"
#include <stdio.h>
#include <stdlib.h>

static const char WHY[] = "this shows where workers are";

struct stack_call {
    struct request *request;
    struct trace *trace;
    char worker[DEATH_WORKER_MAX];
    pid_t pid;
    struct protocol_id job; /* at which the worker was to be, if `of_job` */
    bool of_job, ended; /* `ended`: it may have been at another one's job when it was looked at */
    struct death *last; /* of this worker; NULL = none */
};

static void call_free(struct stack_call *call)
{
    trace_forget(call->trace);
    death_unref(call->last);
    free(call);
}

static void drop(struct request *request)
{
    call_free(request->state);
}

static void answer(struct stack_call *call, const char *text, size_t size, const char *missing)
{
    struct request *request = call->request;
    struct reply *reply = request_begin(request);

    reply_string(reply, "worker", call->worker);
    if (call->pid > 0)
        reply_int(reply, "pid", call->pid);
    if (text)
        report_stack(reply, text, size);
    else
        reply_string(reply, "stack_missing", missing);
    if (call->last)
        report_death(reply, "last_death", request, call->last, true);
    request_end(request);
}

/* The worker has at most one job that has started. */
static bool is_at(const struct job *job)
{
    return job && job->group && job->slot && job->started;
}

static void on_released(void *userdata)
{
    struct stack_call *call = userdata;

    call->ended = call->of_job && !is_at(job_by_id(call->request->context->jobs, &call->job));
}

static void on_ended(void *userdata, char *text, size_t size, const char *missing)
{
    struct stack_call *call = userdata;

    call->trace = NULL;
    if (call->ended)
        answer(call, NULL, 0, "the job has ended");
    else
        answer(call, text, size, missing);
    free(text);
}

static const struct trace_handler HANDLER = {.released = on_released, .ended = on_ended};

/* Answers now, or when the stacks have come. `job` NULL = whatever the worker does. */
static void look_at(struct request *request, struct slot *slot, const struct job *job)
{
    struct stack_call *call = request_allocate(request, sizeof(*call));
    const char *missing;

    if (!call)
        return;
    request->state = call;
    request->drop = drop;
    call->request = request;
    call->of_job = job;
    if (job)
        (void)protocol_id_parse(&call->job, request_string(request, "job"));
    call->pid = slot->worker.process.pid;
    call->last = slot->last_death ? death_ref(slot->last_death) : NULL;
    (void)snprintf(call->worker, sizeof(call->worker), "%s", slot->name);
    if (slot_trace_now(slot, &call->trace, &HANDLER, call, &missing) < 0)
        answer(call, NULL, 0, call->pid > 0 ? missing : "the worker has no process");
}

static void refuse_job(struct request *request, int error)
{
    (void)error;
    (void)request_refuse(request, "job", "the id of a running job");
}

static void look_at_job(struct request *request)
{
    const struct job *job = control_find_job(request, request_string(request, "job"), refuse_job);

    if (!job || (!access_job(request, job) && !access_demand(request, job->group, WHY)))
        return;
    if (is_at(job))
        look_at(request, job->slot, job);
    else
        refuse_job(request, 0);
}

static void get_stack(struct request *request)
{
    struct registry_target target;

    if (request_has(request, "target") == request_has(request, "job"))
        (void)request_refuse(request, "target", "either this or job");
    else if (request_has(request, "job"))
        look_at_job(request);
    else if (!control_find_target(request, request_string(request, "target"), &target) ||
             !access_demand(request, target.group, WHY))
        return;
    else if (!target.slot)
        (void)request_refuse(request, "target", "a worker");
    else
        look_at(request, target.slot, NULL);
}

const struct request_method control_stack_methods[] = {
    {"GetStack", get_stack, .changes = false},
    {0},
};
