/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: GetStack and Profile. */

#include "shared/base/utf8.h"
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
#include <string.h>

/* The default of for_usec, and the longest. */
#define PROFILE_USEC     (10 * (int64_t)USEC_PER_SEC)
#define PROFILE_USEC_MAX (300 * (int64_t)USEC_PER_SEC)
#define PROFILE_NAME_MAX 512
/* How much of the text is read, which is hostile. */
#define PROFILE_STACKS_MAX    8192
#define PROFILE_FUNCTIONS_MAX 64

static const char WHY[] = "this shows where workers are";

struct stack_call {
    struct request *request;
    struct trace *trace;
    char worker[DEATH_WORKER_MAX];
    pid_t pid;
    struct protocol_id job; /* which was asked for, if `of_job` */
    bool of_job, ended;     /* `ended`: the job had ended, so the stacks may be of another one */
    struct death *last;     /* of this worker; NULL = none */
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

/* Whether the process still works on the job that was asked for. True if none was. */
static bool is_still_at(const struct stack_call *call)
{
    const struct job *job =
        call->of_job ? job_by_id(call->request->context->jobs, &call->job) : NULL;

    return !call->of_job || (is_at(job) && job->slot->worker.process.pid == call->pid);
}

static void on_released(void *userdata)
{
    struct stack_call *call = userdata;

    call->ended = !is_still_at(call);
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

/* ---- profiles ---- */

static bool on_sampled(void *userdata)
{
    return is_still_at(userdata);
}

static const char *printable(const char *field, char buffer[PROFILE_NAME_MAX])
{
    (void)utf8_escape(buffer, PROFILE_NAME_MAX, field, strlen(field));
    return buffer;
}

/* Writes the numbers of the first line, which are hostile like all of the text. */
static void report_numbers(struct reply *reply, char *line)
{
    static const char *const names[] = {"samples", "missed", "left_out", "stopped_usec",
                                        "took_usec"};

    (void)strsep(&line, "\t");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *field = line ? strsep(&line, "\t") : "0";
        reply_int(reply, names[i], (int64_t)(strtoull(field, NULL, 10) & INT64_MAX));
    }
}

static void report_folded(struct reply *reply, char *line)
{
    char buffer[PROFILE_NAME_MAX];
    const char *count = strsep(&line, "\t"), *thread = line ? strsep(&line, "\t") : "";
    const char *how = line ? strsep(&line, "\t") : "";

    reply_object(reply, NULL);
    reply_int(reply, "count", (int64_t)(strtoull(count, NULL, 10) & INT32_MAX));
    reply_string(reply, "thread", printable(thread, buffer));
    reply_bool(reply, "waits", strcmp(how, "waits") == 0);
    reply_array(reply, "functions");
    for (unsigned i = 0; line && i < PROFILE_FUNCTIONS_MAX; i++)
        reply_string(reply, NULL, printable(strsep(&line, "\t"), buffer));
    reply_end_array(reply);
    reply_end_object(reply);
}

static void on_profiled(void *userdata, char *text, size_t size, const char *missing)
{
    struct stack_call *call = userdata;
    struct request *request = call->request;
    struct reply *reply = request_begin(request);
    char *line = text, *end;

    call->trace = NULL;
    reply_string(reply, "worker", call->worker);
    if (call->pid > 0)
        reply_int(reply, "pid", call->pid);
    if (missing)
        reply_string(reply, "stack_missing", missing);
    for (unsigned i = 0; i < PROFILE_STACKS_MAX && line && (end = memchr(line, '\n', size)); i++) {
        *end = '\0';
        size -= (size_t)(end + 1 - line);
        if (i == 0) {
            report_numbers(reply, line);
            reply_array(reply, "stacks");
        } else {
            report_folded(reply, line);
        }
        line = end + 1;
    }
    if (line && line != text)
        reply_end_array(reply);
    free(text);
    request_end(request);
}

static const struct trace_handler PROFILE_HANDLER = {.sampled = on_sampled, .ended = on_profiled};

/* ---- what is looked at ---- */

/* Answers now, or when the stacks have come. `job` NULL = whatever the worker does. `duration`: of
 * a profile, or 0. */
static void look_at(struct request *request, struct slot *slot, const struct job *job,
                    usec_t duration)
{
    struct stack_call *call = request_allocate(request, sizeof(*call));
    const struct trace_handler *handler = duration > 0 ? &PROFILE_HANDLER : &HANDLER;
    const struct trace_look look = {.duration = duration, .uid = request->connection->peer.uid};
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
    call->last = slot->last_death && duration == 0 ? death_ref(slot->last_death) : NULL;
    (void)snprintf(call->worker, sizeof(call->worker), "%s", slot->name);
    if (slot_trace_now(slot, look, &call->trace, handler, call, &missing) < 0)
        handler->ended(call, NULL, 0, call->pid > 0 ? missing : "the worker has no process");
}

static void refuse_job(struct request *request, int error)
{
    (void)request_refuse(request, "job", "the id of a running job");
}

static void look_at_job(struct request *request, usec_t duration)
{
    const struct job *job = control_find_job(request, request_string(request, "job"), refuse_job);

    if (!job || (!access_job(request, job) && !access_demand(request, job->group, WHY)))
        return;
    if (is_at(job))
        look_at(request, job->slot, job, duration);
    else
        refuse_job(request, 0);
}

static void find_and_look(struct request *request, usec_t duration)
{
    struct registry_target target;

    if (request_has(request, "target") == request_has(request, "job"))
        (void)request_refuse(request, "target", "either this or job");
    else if (request_has(request, "job"))
        look_at_job(request, duration);
    else if (!control_find_target(request, request_string(request, "target"), &target) ||
             !access_demand(request, target.group, WHY))
        return;
    else if (!target.slot)
        (void)request_refuse(request, "target", "a worker");
    else
        look_at(request, target.slot, NULL, duration);
}

static void get_stack(struct request *request)
{
    find_and_look(request, 0);
}

static void take_profile(struct request *request)
{
    if (request_range(request, "for_usec", 1, PROFILE_USEC_MAX))
        find_and_look(request, (usec_t)request_int(request, "for_usec", PROFILE_USEC));
}

const struct request_method control_stack_methods[] = {
    {"GetStack", get_stack, .changes = false},
    {"Profile", take_profile, .changes = false},
    {0},
};
