/* SPDX-License-Identifier: MIT */
/* Checks and submits the job of Create and Do. */

#include "supervisor/control/jobs/jobs.h"

#include "shared/base/cleanup.h"
#include "supervisor/control/access.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/target.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group.h"
#include "supervisor/job/queue.h"
#include "supervisor/store/durable-job.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool refuse_id(struct request *request, const struct varlink_bytes *id)
{
    struct reply *reply = request_begin_error(request, "BadId");

    reply_text(reply, "id", id->data, id->size);
    reply_string(reply, "allowed", PROTOCOL_NAME_ALLOWED "; " PROTOCOL_NAME_NO_SLOT);
    request_end(request);
    return false;
}

static void report_busy(struct reply *reply, const struct group *group,
                        const struct cell_request *wanted)
{
    const struct cell *cell =
        group->cell ? group->cell : group_find_cell(group, wanted->key, wanted->key_size);

    reply_string(reply, "group", group->name);
    reply_uint(reply, "queued", cell ? job_counts_waiting(&cell->counts) : 0);
    reply_uint(reply, "maximum", group->config->queue_max);
}

void control_refuse_taken(struct request *request, const struct job *holder)
{
    char id[PROTOCOL_ID_TEXT];

    request_fail_string(request, refusal_of(CELL_E_TAKEN)->varlink, "holder",
                        job_format_id(holder, id));
}

static void refuse(struct request *request, const struct group *group,
                   const struct cell_request *wanted, int r)
{
    const struct refusal *refusal = refusal_of(r);
    const char *error = refusal ? refusal->varlink : NULL, *problem;
    char needed[PROTOCOL_ID_TEXT + 64];
    struct reply *reply;

    if (!refusal) {
        request_internal(request, r);
    } else if (r == CELL_E_BUSY || r == CELL_E_TOO_MANY) {
        reply = request_begin_error(request, error);
        if (r == CELL_E_BUSY)
            report_busy(reply, group, wanted);
        else
            control_report_cells(reply, group);
        request_end(request);
    } else if (r == CELL_E_TOO_LARGE) {
        request_fail_string(request, error, "problem", refusal->text);
    } else if (r == CELL_E_BAD_FILE) {
        request_fail_strings(request, error, "group", group->name, "problem",
                             group_fault_text(group));
    } else if (r == CELL_E_EXISTS) {
        request_fail_string(request, error, "id", wanted->name);
    } else if (r == CELL_E_DRAINING) {
        request_fail_string(request, error, "group", group->name);
    } else if (r == CELL_E_STORE_FULL || r == CELL_E_STORE_FAILED) {
        problem = group_store_problem(group);
        request_fail_strings(request, error, "group", group->name, "problem",
                             problem ? problem : refusal->text);
    } else if (r == CELL_E_UNSURE) {
        problem = group_store_problem(group);
        request_fail_string(request, error, "problem", problem ? problem : refusal->text);
    } else if (r == CELL_E_NO_PARENT || r == CELL_E_NOT_DURABLE || r == CELL_E_NO_BATCH ||
               r == CELL_E_BATCH_OVER || r == CELL_E_CIRCLE) {
        request_fail_string(request, error, "id", wanted->rare->ties->problem);
    } else if (r == CELL_E_UNREADABLE) {
        (void)snprintf(needed, sizeof(needed), "the right to read job %s, or to change the batch",
                       wanted->rare->ties->problem);
        request_fail_string(request, error, "needed", needed);
    } else if (r == CELL_E_NO_KEY || r == CELL_E_BAD_KEY) {
        request_refuse(request, "key", CONTROL_KEY_ALLOWED);
    } else {
        request_fail(request, error);
    }
}

void control_refuse_job(struct request *request, const struct job *job)
{
    const struct cell_request wanted = {
        .name = job->name ? job->name : "", .key = job->key, .key_size = job->key_size};

    refuse(request, job->group, &wanted, job->refusal);
}

/*
 * A number, or `absent`. A number out of range becomes `absent - 1`, which job_options_check()
 * refuses.
 */
static uint32_t number(const struct varlink_object *given, const char *name, uint32_t absent)
{
    const int64_t value = varlink_int(given, name, 0);

    if (!varlink_has(given, name))
        return absent;
    return value < absent ? (uint32_t)value : absent - 1;
}

static bool take_unique(struct request *request, const struct varlink_object *given,
                        struct cell_request_rare *ret)
{
    static const char *const names[] = {
        [PROTOCOL_CONFLICT_EXISTING] = "existing",
        [PROTOCOL_CONFLICT_REJECT] = "reject",
        [PROTOCOL_CONFLICT_REPLACE] = "replace",
        [PROTOCOL_CONFLICT_REQUEUE] = "requeue",
    };
    const struct varlink_bytes unique = varlink_bytes(given, "unique");
    const char *conflict = varlink_string(given, "on_conflict");

    if (unique.data && (unique.size == 0 || unique.size > PROTOCOL_KEY_MAX))
        return request_refuse(request, "unique", "1 to 255 bytes");
    ret->unique_key = unique.data;
    ret->unique_size = (uint32_t)unique.size;
    for (unsigned i = 1; conflict && i < ELEMENTS(names); i++)
        if (strcmp(conflict, names[i]) == 0)
            ret->on_conflict = (enum protocol_conflict)i;
    return true;
}

static bool may_read(void *userdata, const struct job *job)
{
    return access_job(userdata, job);
}

static bool may_change(void *userdata, const struct job *job)
{
    return access_cancel(userdata, job);
}

/* `ties` is room for what the options name. */
static bool take_ties(struct request *request, const struct varlink_object *given,
                      struct tie_request *ties, struct cell_request_rare *ret)
{
    const char *after = varlink_string(given, "after"), *batch = varlink_string(given, "batch");
    const int condition = varlink_choice(given, "condition");

    if (condition >= 0 && !after)
        return request_refuse(request, "condition", "only with after");
    if (after && tie_list_parse(&ties->list, after, strlen(after),
                                condition < 0 ? TIE_SUCCESS : (enum tie_condition)condition) < 0)
        return request_refuse(request, "after", TIE_PARENTS_ALLOWED);
    if (batch && ret->opens_batch)
        return request_refuse(request, "batch", "not for a batch");
    if (batch && tie_set_id(&ties->list.batch, batch, strlen(batch)) < 0)
        return request_refuse(request, "batch", "the id of a batch");
    ties->may_read = may_read;
    ties->may_change = may_change;
    ties->userdata = request;
    ret->ties = after || batch ? ties : NULL;
    return true;
}

static bool take_rare(struct request *request, const struct varlink_object *given,
                      struct tie_request *ties, struct cell_request_rare *ret)
{
    ret->delay = varlink_usec(given, "delay_usec", 0);
    ret->at = varlink_usec(given, "at", 0);
    ret->debounce = varlink_usec(given, "debounce_usec", 0);
    ret->debounce_max = varlink_usec(given, "debounce_max_usec", 0);
    ret->tags = varlink_string(given, "tags");
    ret->tags_size = ret->tags ? (uint32_t)strlen(ret->tags) : 0;
    ret->traceparent = varlink_string(given, "traceparent");
    ret->traceparent_size = ret->traceparent ? (uint32_t)strlen(ret->traceparent) : 0;
    return take_unique(request, given, ret) && take_ties(request, given, ties, ret);
}

static bool take_options(struct request *request, struct cell_request *ret,
                         struct tie_request *ties)
{
    const struct job_options_problem *problem;
    struct job_options *options = &ret->options;
    struct varlink_bytes id, key;
    struct varlink_object given;
    int64_t cost;

    (void)varlink_object(&request->parameters, "options", &given);
    cost = varlink_int(&given, "cost", 1);
    id = varlink_bytes(&given, "id");
    if (id.data &&
        (!protocol_name_valid(id.data, id.size) || protocol_name_is_slot(id.data, id.size)))
        return refuse_id(request, &id);
    if (id.data)
        ret->name = id.data;
    key = varlink_bytes(&given, "key");
    ret->key = key.data;
    ret->key_size = (uint32_t)key.size;
    if (!take_rare(request, &given, ties, ret->rare))
        return false;
    options->max_retries = number(&given, "max_retries", PROTOCOL_DEFAULT_RETRIES);
    options->priority = (uint8_t)number(&given, "priority", PROTOCOL_DEFAULT_PRIORITY);
    if (cost < 1 || cost > JOB_COST_MAX)
        return request_refuse(request, "cost", "1 to 255");
    options->cost = cost > 1 ? (uint8_t)cost : 0; /* 0 = the default */
    options->timeout = varlink_usec(&given, "timeout_usec", options->timeout);
    options->backoff_min = varlink_usec(&given, "backoff_min_usec", options->backoff_min);
    options->backoff_max = varlink_usec(&given, "backoff_max_usec", options->backoff_max);
    ret->wait = varlink_usec(&given, "wait_usec", ret->wait);
    ret->deadline = varlink_usec(&given, "deadline_usec", ret->deadline);
    problem = cell_request_check(ret);
    return !problem || request_refuse(request, problem->option, problem->allowed);
}

struct group *control_take_group(struct request *request, const char *name)
{
    struct group *group;

    if (control_refuse_stopping(request))
        return NULL;
    group = registry_find(request->context->registry, name);
    /* A removed group that still drains takes no new jobs. */
    if (!group || group->removal != GROUP_STAYS) {
        control_refuse_group(request, name);
        return NULL;
    }
    if (group->config->type != CONFIG_ACTOR) {
        request_fail_string(request, "NotAnActor", "group", name);
        return NULL;
    }
    if (!access_submit(request, group)) {
        access_refuse_submit(request, group);
        return NULL;
    }
    return group;
}

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
    hold = request_allocate(request, sizeof(*hold));
    if (!hold)
        return NULL;
    hold->request = request;
    cell_waiter_init(&hold->waiter, on_turn);
    loop_deferred_init(&hold->again, on_again);
    request->state = hold;
    request->drop = drop_hold;
    return hold;
}

/* Whether the call may wait for room in the queue, for the store of durable jobs to be opened, or
 * for another job with its id to be on disk. */
static bool may_wait(const struct request *request, const struct group *group,
                     const struct cell_request *wanted)
{
    return wanted->wait > 0 || request->drop == drop_hold || group_store_is_opening(group) ||
           ((wanted->name[0] != '\0' || wanted->rare->unique_size > 0 || wanted->rare->ties ||
             group->config->unique != CONFIG_UNIQUE_NO) &&
            request->context->durable->store);
}

static void end_hold(struct request *request)
{
    if (request->drop != drop_hold)
        return;
    drop_hold(request);
    request->state = NULL;
    request->drop = NULL;
}

/* Submitters must not let their jobs overtake those of others. */
bool control_may_prioritise(struct request *request, uint8_t priority)
{
    return request->connection->account->may_change || priority >= QUEUE_PRIORITY_DEFAULT ||
           request_refuse(request, "priority",
                          "at least 32 (the default) without permission to change things");
}

struct job *control_submit(struct request *request, const struct control_submit_options *options,
                           bool *ret_existing)
{
    struct cell_request_rare rare = {.opens_batch = options->opens_batch};
    struct cell_request wanted = {
        .name = "",
        .keep_result = options->keep_result,
        .submitter_uid = request->connection->peer.uid,
        .bounded = !request->connection->account->may_change,
        .options = JOB_OPTIONS_DEFAULT,
        .data = "",
        .rare = &rare,
    };
    _cleanup_(control_payload_deinit)
    struct control_payload payload = CONTROL_PAYLOAD_NULL;
    struct tie_request ties = {.list = {.n = 0}};
    struct hold *hold = NULL;
    struct group *group;
    struct job *job;
    int r;

    group = control_take_group(request, request_string(request, "group"));
    if (!group || !take_options(request, &wanted, &ties) ||
        (!options->opens_batch && !control_take_payload(request, &payload)))
        return NULL;
    if (!control_may_prioritise(request, wanted.options.priority))
        return NULL;
    if (payload.data)
        wanted.data = payload.data;
    wanted.size = payload.size;
    if (!options->keep_result || group->config->durable)
        wanted.changed = options->changed;
    wanted.owner = options->owner;
    if (may_wait(request, group, &wanted) && !(hold = take_hold(request)))
        return NULL;
    wanted.waiter = hold ? &hold->waiter : NULL;
    r = group_submit(group, &wanted, &job);
    if (r == CELL_E_WAIT)
        return NULL;
    end_hold(request);
    *ret_existing = r == CELL_E_EXISTING;
    if (r == 0 || r == CELL_E_EXISTING)
        return job;
    if (r == CELL_E_TAKEN)
        control_refuse_taken(request, job);
    else
        refuse(request, group, &wanted, r);
    return NULL;
}
