/* SPDX-License-Identifier: MIT */

#include "supervisor/control/control-submit.h"

#include "shared/base/cleanup.h"
#include "supervisor/context.h"
#include "supervisor/control/control-payload.h"
#include "supervisor/control/control-target.h"
#include "supervisor/group/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    reply_string(reply, "allowed", CONTROL_ID_ALLOWED);
    request_end(request);
    return false;
}

static void refuse_busy(struct request *request, const struct group *group,
                        const struct cell_request *wanted)
{
    const struct cell *cell =
        group->cell ? group->cell : group_find_cell(group, wanted->key, wanted->key_size);
    struct reply *reply = request_begin_error(request, "Busy");

    reply_string(reply, "group", group->name);
    reply_uint(reply, "queued", cell ? cell->queue.n_jobs + cell->n_backoff : 0);
    reply_uint(reply, "maximum", group->config->queue_max);
    request_end(request);
}

static void refuse_cell(struct request *request, const struct group *group)
{
    struct reply *reply = request_begin_error(request, "TooManyCells");

    reply_string(reply, "group", group->name);
    reply_uint(reply, "maximum", group->config->cells_max);
    request_end(request);
}

static void refuse(struct request *request, const struct group *group,
                   const struct cell_request *wanted, int r)
{
    const struct varlink_bytes bytes = {wanted->name, strlen(wanted->name)};

    switch (r) {
    case CELL_E_BUSY:
        refuse_busy(request, group, wanted);
        break;
    case CELL_E_TOO_LARGE:
        request_fail_string(request, "BadPayload", "problem",
                            "it is above QueueMemoryMax= of the group");
        break;
    case CELL_E_EXISTS:
        request_fail_string(request, "Exists", "id", wanted->name);
        break;
    case CELL_E_BAD_ID:
        refuse_id(request, &bytes);
        break;
    case CELL_E_NO_KEY:
    case CELL_E_BAD_KEY:
        control_refuse_option(request, "key", CONTROL_KEY_ALLOWED);
        break;
    case CELL_E_TOO_MANY:
        refuse_cell(request, group);
        break;
    case CELL_E_STOPPING:
        request_fail(request, "Stopping");
        break;
    default:
        request_internal(request, r);
    }
}

/* ---- parameters ---- */

/* A time span. 0 leaves `*ret` as it is; -1 is USEC_INFINITY. */
static bool take_usec(struct request *request, const char *name, const struct varlink_int *given,
                      usec_t *ret)
{
    if (given->value < -1)
        return control_refuse_option(request, name, CONTROL_USEC_ALLOWED);
    if (given->value != 0)
        *ret = (usec_t)given->value;
    return true;
}

static bool take_backoff(struct request *request, const struct options_parameters *options,
                         struct job_options *ret)
{
    if (!take_usec(request, "backoff_min_usec", &options->backoff_min, &ret->backoff_min) ||
        !take_usec(request, "backoff_max_usec", &options->backoff_max, &ret->backoff_max))
        return false;
    if (ret->backoff_min > JOB_BACKOFF_MAX)
        return control_refuse_option(request, "backoff_min_usec", "at most 1 day");
    if (ret->backoff_max > JOB_BACKOFF_MAX)
        return control_refuse_option(request, "backoff_max_usec", "at most 1 day");
    if (ret->backoff_max != PROTOCOL_DEFAULT_USEC && ret->backoff_min > ret->backoff_max)
        return control_refuse_option(request, "backoff_min_usec", "at most backoff_max_usec");
    return true;
}

/* When to begin, how urgently, and how long to wait for room. */
static bool take_schedule(struct request *request, const struct options_parameters *options,
                          struct cell_request *ret)
{
    if (options->priority.set) {
        if (options->priority.value < 0 || options->priority.value >= QUEUE_PRIORITIES)
            return control_refuse_option(request, "priority", "0 (first) to 63");
        ret->options.priority = (uint8_t)options->priority.value;
    }
    if (!take_usec(request, "delay_usec", &options->delay, &ret->delay) ||
        !take_usec(request, "at", &options->at, &ret->at) ||
        !take_usec(request, "wait_usec", &options->wait, &ret->wait) ||
        !take_usec(request, "deadline_usec", &options->deadline, &ret->deadline))
        return false;
    if (ret->delay > JOB_DELAY_MAX)
        return control_refuse_option(request, "delay_usec", "at most 366 days");
    if (ret->at > usec_add(clock_realtime(), JOB_DELAY_MAX))
        return control_refuse_option(request, "at", "at most 366 days from now");
    if (ret->delay > 0 && ret->at > 0)
        return control_refuse_option(request, "at", "not together with delay_usec");
    return true;
}

static bool take_id(struct request *request, const struct varlink_bytes *id,
                    struct cell_request *ret)
{
    if (!id->data)
        return true;
    if (!protocol_name_valid(id->data, id->size))
        return refuse_id(request, id);
    ret->name = id->data;
    return true;
}

static bool take_options(struct request *request, json_t *object, struct cell_request *ret)
{
    struct options_parameters options = {0};
    const char *bad = NULL;

    if (varlink_take(object, options_table, &options, &bad) != 0) {
        request_invalid(request, bad);
        return false;
    }
    if (!take_id(request, &options.id, ret))
        return false;
    if (options.key.size > PROTOCOL_KEY_MAX)
        return control_refuse_option(request, "key", "at most 255 bytes");
    ret->key = options.key.data;
    ret->key_size = (uint32_t)options.key.size;
    if (options.max_retries.set) {
        if (options.max_retries.value < 0 || options.max_retries.value > JOB_RETRIES_MAX)
            return control_refuse_option(request, "max_retries", "0 to 1000000");
        ret->options.max_retries = (uint32_t)options.max_retries.value;
    }
    if (!take_usec(request, "timeout_usec", &options.timeout, &ret->options.timeout) ||
        !take_backoff(request, &options, &ret->options))
        return false;
    return take_schedule(request, &options, ret);
}

static struct group *take_group(struct request *request, const char *name)
{
    struct group *group;

    if (control_refuse_stopping(request))
        return NULL;
    group = registry_find(&request->context->registry, name);
    /* One that a reload removed and that still drains is no longer there for new jobs. */
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

/* A call that waits for room in a queue: when it is its turn it is made again. */
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

/* NULL when it has been answered. */
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
