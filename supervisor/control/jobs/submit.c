/* SPDX-License-Identifier: MIT */

#include "supervisor/control/jobs/submit.h"

#include "shared/base/cleanup.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/payload.h"
#include "supervisor/control/target.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group.h"

#include <errno.h>
#include <stdlib.h>

struct submit_parameters {
    const char *group;
    json_t *payload, *options;
};

struct options_parameters {
    struct varlink_bytes id;
    struct varlink_bytes key;
    struct varlink_int max_retries, timeout, backoff_min, backoff_max;
    struct varlink_int priority, delay, at, wait, deadline;
};

#define PARAMETER(type, struct_name, member, required)                                             \
    {                                                                                              \
#member, type, required, offsetof(struct struct_name, member)                              \
    }

static const struct varlink_parameter submit_table[] = {
    PARAMETER(VARLINK_STRING, submit_parameters, group, true),
    PARAMETER(VARLINK_OBJECT, submit_parameters, payload, false),
    PARAMETER(VARLINK_OBJECT, submit_parameters, options, false),
    {0},
};

static const struct varlink_parameter options_table[] = {
    PARAMETER(VARLINK_BYTES, options_parameters, id, false),
    PARAMETER(VARLINK_BYTES, options_parameters, key, false),
    PARAMETER(VARLINK_INT, options_parameters, max_retries, false),
    {"timeout_usec", VARLINK_INT, false, offsetof(struct options_parameters, timeout)},
    {"backoff_min_usec", VARLINK_INT, false, offsetof(struct options_parameters, backoff_min)},
    {"backoff_max_usec", VARLINK_INT, false, offsetof(struct options_parameters, backoff_max)},
    PARAMETER(VARLINK_INT, options_parameters, priority, false),
    {"delay_usec", VARLINK_INT, false, offsetof(struct options_parameters, delay)},
    PARAMETER(VARLINK_INT, options_parameters, at, false),
    {"wait_usec", VARLINK_INT, false, offsetof(struct options_parameters, wait)},
    {"deadline_usec", VARLINK_INT, false, offsetof(struct options_parameters, deadline)},
    {0},
};

/* ---- refusals ---- */

static bool refuse_id(struct request *request, const struct varlink_bytes *id)
{
    struct reply *reply = request_begin_error(request, "BadId");

    reply_text(reply, "id", id->data, id->size);
    reply_string(reply, "allowed", PROTOCOL_NAME_ALLOWED);
    request_end(request);
    return false;
}

static void report_busy(struct reply *reply, const struct group *group,
                        const struct cell_request *wanted)
{
    const struct cell *cell =
        group->cell ? group->cell : group_find_cell(group, wanted->key, wanted->key_size);

    reply_string(reply, "group", group->name);
    reply_uint(reply, "queued", cell ? cell->queue.n_jobs + cell->counts.n[JOBS_BACKOFF] : 0);
    reply_uint(reply, "maximum", group->config->queue_max);
}

static void refuse(struct request *request, const struct group *group,
                   const struct cell_request *wanted, int r)
{
    const struct refusal *refusal = refusal_of(r);
    struct reply *reply;

    if (!refusal) {
        request_internal(request, r);
        return;
    }
    reply = request_begin_error(request, refusal->varlink);
    if (r == CELL_E_BUSY) {
        report_busy(reply, group, wanted);
    } else if (r == CELL_E_TOO_MANY) {
        control_report_cells(reply, group);
    } else if (r == CELL_E_TOO_LARGE) {
        reply_string(reply, "problem", refusal->text);
    } else if (r == CELL_E_EXISTS) {
        reply_string(reply, "id", wanted->name);
    } else if (r == CELL_E_NO_KEY || r == CELL_E_BAD_KEY) {
        reply_string(reply, "option", "key");
        reply_string(reply, "allowed", CONTROL_KEY_ALLOWED);
    }
    request_end(request);
}

/* ---- parameters ---- */

static const struct span {
    const char *name;
    size_t given, to; /* offsets in struct options_parameters and struct cell_request */
} SPANS[] = {
#define SPAN(name, member, to)                                                                     \
    {                                                                                              \
        name, offsetof(struct options_parameters, member), offsetof(struct cell_request, to)       \
    }
    SPAN("timeout_usec", timeout, options.timeout),
    SPAN("backoff_min_usec", backoff_min, options.backoff_min),
    SPAN("backoff_max_usec", backoff_max, options.backoff_max),
    SPAN("delay_usec", delay, delay),
    SPAN("at", at, at),
    SPAN("wait_usec", wait, wait),
    SPAN("deadline_usec", deadline, deadline),
};

/* 0 = the default, -1 = USEC_INFINITY. */
static bool take_spans(struct request *request, const struct options_parameters *options,
                       struct cell_request *ret)
{
    for (size_t i = 0; i < ELEMENTS(SPANS); i++) {
        const struct varlink_int *given = (const void *)((const char *)options + SPANS[i].given);

        if (given->value < -1)
            return control_refuse_option(request, SPANS[i].name, CONTROL_USEC_ALLOWED);
        if (given->value != 0)
            *(usec_t *)(void *)((char *)ret + SPANS[i].to) = (usec_t)given->value;
    }
    return true;
}

/*
 * A number, or `absent`. A number out of range becomes `absent - 1`, which job_options_check()
 * refuses.
 */
static uint32_t number(const struct varlink_int *given, uint32_t absent)
{
    if (!given->set)
        return absent;
    return given->value < 0 || given->value >= absent ? absent - 1 : (uint32_t)given->value;
}

static bool take_names(struct request *request, const struct options_parameters *options,
                       struct cell_request *ret)
{
    if (options->id.data && !protocol_name_valid(options->id.data, options->id.size))
        return refuse_id(request, &options->id);
    if (options->id.data)
        ret->name = options->id.data;
    if (options->key.size > PROTOCOL_KEY_MAX)
        return control_refuse_option(request, "key", "at most 255 bytes");
    ret->key = options->key.data;
    ret->key_size = (uint32_t)options->key.size;
    return true;
}

static bool take_options(struct request *request, json_t *object, struct cell_request *ret)
{
    const struct job_options_problem *problem;
    struct options_parameters options = {0};
    const char *bad = NULL;

    if (varlink_take(object, options_table, &options, &bad) != 0) {
        request_invalid(request, bad);
        return false;
    }
    ret->options.max_retries = number(&options.max_retries, PROTOCOL_DEFAULT_RETRIES);
    ret->options.priority = (uint8_t)number(&options.priority, PROTOCOL_DEFAULT_PRIORITY);
    if (!take_names(request, &options, ret) || !take_spans(request, &options, ret))
        return false;
    problem = job_options_check(&ret->options, ret->delay, ret->at);
    return !problem || control_refuse_option(request, problem->option, problem->allowed);
}

static struct group *take_group(struct request *request, const char *name)
{
    struct group *group;

    if (control_refuse_stopping(request))
        return NULL;
    group = registry_find(request->context->registry, name);
    /* A removed group that still drains takes no new jobs. */
    if (!group || group->removed) {
        control_refuse_group(request, name);
        return NULL;
    }
    if (group->config->type != CONFIG_ACTOR) {
        request_fail_string(request, "NotAnActor", "group", name);
        return NULL;
    }
    return group;
}

/* ---- waiting for room ---- */

/* A call that waits for room in a queue, and is then executed again. */
struct hold {
    struct cell_waiter waiter;
    struct loop_deferred again;
    struct request *request;
};

static void drop_hold(struct request *request)
{
    struct hold *hold = request->state;

    cell_waiter_reset(&hold->waiter);
    loop_undefer(&hold->again);
    free(hold);
}

static void on_again(struct loop_deferred *deferred)
{
    struct request *request = list_entry(deferred, struct hold, again)->request;

    request->method->call(request);
}

static void on_turn(struct cell_waiter *waiter)
{
    struct hold *hold = list_entry(waiter, struct hold, waiter);

    loop_defer(hold->request->context->loop, &hold->again);
}

/* NULL = an error has been sent. */
static struct hold *take_hold(struct request *request)
{
    struct hold *hold;

    if (request->drop == drop_hold)
        return request->state;
    hold = malloc(sizeof(*hold));
    if (!hold) {
        request_internal(request, -ENOMEM);
        return NULL;
    }
    hold->request = request;
    cell_waiter_init(&hold->waiter, on_turn);
    loop_deferred_init(&hold->again, on_again);
    request->state = hold;
    request->drop = drop_hold;
    return hold;
}

static void end_hold(struct request *request)
{
    if (request->drop != drop_hold)
        return;
    drop_hold(request);
    request->state = NULL;
    request->drop = NULL;
}

struct job *control_submit(struct request *request, const struct control_submit_options *options)
{
    struct cell_request wanted = {
        .name = "",
        .keep_result = options->keep_result,
        .submitter_uid = request->connection->peer.uid,
        .options = JOB_OPTIONS_DEFAULT,
        .data = "",
    };
    struct submit_parameters parameters = {0};
    _cleanup_(control_payload_deinit)
    struct control_payload payload = CONTROL_PAYLOAD_NULL;
    struct hold *hold = NULL;
    struct group *group;
    struct job *job;
    int r;

    if (!request_take(request, submit_table, &parameters))
        return NULL;
    group = take_group(request, parameters.group);
    if (!group || !take_options(request, parameters.options, &wanted) ||
        !control_take_payload(request, parameters.payload, &payload))
        return NULL;
    wanted.data = payload.data;
    wanted.size = payload.size;
    if (wanted.wait > 0 && !(hold = take_hold(request)))
        return NULL;
    wanted.waiter = hold ? &hold->waiter : NULL;
    r = group_submit(group, &wanted, options->changed, options->owner, 0, &job);
    if (r == CELL_E_WAIT)
        return NULL;
    end_hold(request);
    if (r == 0)
        return job;
    refuse(request, group, &wanted, r);
    return NULL;
}
