/* SPDX-License-Identifier: MIT */

/*
 * io.troupe.Jobs.CancelAll, Move, Set and RunNow: change one job, or all that match a filter.
 * CancelAll begins with waiting jobs, so that they do not begin when running ones end; a second
 * round catches those that began during the first. The others change only jobs that wait.
 */

#include "supervisor/control/access.h"
#include "supervisor/control/bulk.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/jobs.h"
#include "supervisor/control/target.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <stdlib.h>

/* The most changes that are being written at a time, and the most bytes of their jobs' payloads. */
#define WRITING_MAX       1024
#define WRITING_BYTES_MAX (UINT64_C(16) << 20)
/* The cost of changing a job, relative to looking at one. */
#define CHANGE_COST 8

#define JOBS_DELAYED (1u << JOB_BACKOFF | 1u << JOB_DELAYED)
#define JOBS_WAITING (1u << JOB_QUEUED | JOBS_DELAYED)
#define JOBS_PENDED  (JOBS_WAITING | 1u << JOB_PENDING)

struct change {
    struct bulk bulk;
    struct job_walk walk; /* texts of the filter are borrowed from the call */
    struct job *one;      /* the only job, until it is changed; valid in the turn of the call */
    bool last_round;
    uint64_t bytes; /* payloads of jobs that are being written */
    /* Returns 0, CELL_E_* or -errno. NULL = cancel. */
    int (*apply)(const struct change *change, struct job *job);
    uint64_t to;      /* reference of a group */
    int64_t priority; /* -1 = unchanged */
    usec_t delay;     /* 0 = unchanged */
};

#define change_of(pointer) list_entry(bulk_of(pointer), struct change, bulk)

/* ---- one job ---- */

/* Counts the change when it is on disk. */
static void await_written(struct change *change, struct job *job)
{
    struct bulk *bulk = &change->bulk;
    struct job_waiter *waiter = job_waiter_new(bulk->context->jobs, job);
    struct bulk_write *write = waiter ? bulk_write_new(bulk, NULL) : NULL;

    if (!write) {
        if (waiter)
            job_waiter_free(bulk->context->jobs, waiter);
        bulk_fail(bulk, -ENOMEM);
        return;
    }
    change->bytes += job->payload.size;
    waiter->changed = bulk_on_written;
    waiter->owner = write;
    durable_job_await(job, waiter);
}

static void cancel_one(struct change *change, struct job *job)
{
    const uid_t uid = change->bulk.parts.request->connection->peer.uid;

    switch (cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, uid)) {
    case 0:
        change->bulk.n_done++;
        break;
    case CELL_CANCEL_E_WAIT:
        await_written(change, job);
        break;
    default:
        break; /* it has ended */
    }
}

static void change_one(struct change *change, struct job *job)
{
    const struct control_context *context = change->bulk.context;
    int r;

    if (job->record && durable_job_is_settled(job))
        return; /* it ends */
    (void)job_ref(job);
    r = change->apply(change, job);
    if (r != 0)
        bulk_fail(&change->bulk, r);
    else if (job->record && durable_job_is_busy(job))
        await_written(change, job);
    else
        change->bulk.n_done++;
    job_unref(context->jobs, job);
}

static int move_job(const struct change *change, struct job *job)
{
    struct group *to = registry_get(change->bulk.context->registry, change->to);

    return !to ? CELL_E_STOPPING : to == job->group ? 0 : group_move_job(to, job);
}

static int set_job(const struct change *change, struct job *job)
{
    int r = change->priority >= 0 ? cell_set_priority(job, (uint8_t)change->priority) : 0;

    return r == 0 && change->delay > 0 ? cell_set_delay(job, change->delay) : r;
}

static int release_job(const struct change *change, struct job *job)
{
    return cell_run_now(job);
}

/* ---- all that match ---- */

static void visit(struct job_walk *walk, struct job *job, struct loaded_job *row)
{
    struct change *change = change_of(walk->parts);
    struct bulk *bulk = &change->bulk;
    int r = 0;

    if (job_cancel_requested(job) || !access_cancel(walk->parts->request, job))
        return;
    if (bulk->dry_run) {
        bulk->n_done++;
        return;
    }
    if (row)
        r = job_lookup_take(bulk->context->groups, row, &job);
    if (r == 0)
        change->apply ? change_one(change, job) : cancel_one(change, job);
    else if (r != CELL_E_MISSING)
        bulk_fail(bulk, r);
    (void)request_part_full(walk->parts, CHANGE_COST - 1);
}

/* Whether rows can be read now, or once the store is open. */
static bool can_read(const struct group_context *groups)
{
    const struct store *store = groups->durable->store;

    return job_filter_can_read(groups) || (store && store_state(store) == STORE_OPENING);
}

static bool is_writing_enough(struct change *change)
{
    if (change->bulk.n_writes == 0)
        change->bytes = 0;
    return change->bulk.n_writes >= WRITING_MAX || change->bytes > WRITING_BYTES_MAX;
}

static bool change_next(struct request_parts *parts)
{
    struct change *change = change_of(parts);

    parts->waits = is_writing_enough(change);
    if (parts->waits || job_walk_step(&change->walk))
        return true;
    if (change->last_round) {
        parts->waits = change->bulk.n_writes > 0;
        return parts->waits;
    }
    change->last_round = true;
    change->walk.filter.states = JOB_FILTER_LIVE;
    change->walk.on_disk = can_read(change->bulk.context->groups);
    parts->cursor = 0;
    return true;
}

static bool change_only(struct request_parts *parts)
{
    struct change *change = change_of(parts);
    struct job *job = change->one;

    change->one = NULL;
    if (job)
        change_one(change, job);
    parts->waits = change->bulk.n_writes > 0;
    return parts->waits;
}

static void free_change(struct request_parts *parts)
{
    job_walk_end(&change_of(parts)->walk);
    bulk_deinit(bulk_of(parts));
    free(change_of(parts));
}

static void finish(struct request_parts *parts)
{
    const struct change *change = change_of(parts);
    const struct bulk *bulk = &change->bulk;
    struct reply *reply = request_part_reply(parts);

    if (parts->step == change_only && bulk->n_failed > 0) {
        request_begin_error(parts->request, "NotChanged");
        reply_string(reply, "id", request_string(parts->request, "id"));
        reply_string(reply, "problem", bulk->problem);
        return;
    }
    bulk_report(bulk, reply, change->apply ? "changed" : "cancelled");
    if (bulk->dry_run)
        reply_uint(reply, "until_at", change->walk.filter.until);
}

/* ---- the call ---- */

/* Takes the members of JobFilter. `states`: of the jobs that the call changes. False: an error has
 * been sent. */
static bool take_filter(struct request *request, const struct varlink_object *given,
                        unsigned states, struct job_filter *ret)
{
    const struct varlink_bytes key = varlink_bytes(given, "key");
    const char *cause = varlink_string(given, "cause");
    const int word = varlink_choice(given, "state");
    const int state = word == JOB_SUCCEEDED ? JOB_PENDING : word; /* it follows delayed there */
    const usec_t now = loop_realtime(request->context->loop);

    if (varlink_int(given, "until_at", 1) == 0) /* 0 would mean: no bound */
        return request_refuse(request, "until_at", "1 or more");
    if (!job_filter_take_group(ret, request, varlink_string(given, "group")))
        return false;
    if (key.data && ret->key.data)
        return request_refuse(request, "key", "only with a whole group");
    if (state >= 0 && !(states & 1u << state))
        return request_refuse(request, "state",
                              states == JOBS_DELAYED   ? "backoff, delayed"
                              : states == JOBS_WAITING ? "queued, backoff, delayed"
                                                       : "queued, backoff, delayed, pending");
    if (key.data)
        ret->key = key;
    ret->cause = attempt_cause_from_string(cause ? cause : "");
    ret->text = varlink_bytes(given, "text");
    ret->states = state >= 0 ? 1u << state : states;
    ret->since = varlink_usec(given, "since_at", 0);
    ret->until = varlink_usec(given, "until_at", now);
    if (ret->until > now)
        ret->until = now;
    return true;
}

/* Whether jobs of the group wait on disk, or may wait there, and cannot be read. */
static bool is_unreadable(const struct request *request, const struct group *group)
{
    return group && !can_read(request->context->groups) &&
           (group->counts.n[JOBS_ON_DISK] > 0 ||
            (group->config->durable && group->rows != GROUP_READ));
}

static bool may_change_group(struct request *request, const struct group *group)
{
    if (access_submit(request, group))
        return true;
    access_refuse_submit(request, group);
    return false;
}

/* `wanted` has apply(), and the members that apply() needs. Returns NULL after an error has been
 * sent. */
static struct change *change_new(struct request *request, const struct change *wanted)
{
    struct change *change = request_allocate(request, sizeof(*change));

    if (!change)
        return NULL;
    bulk_init(&change->bulk, request);
    change->bulk.parts =
        (struct request_parts){.step = change_next, .finish = finish, .free = free_change};
    change->apply = wanted->apply;
    change->to = wanted->to;
    change->priority = wanted->priority;
    change->delay = wanted->delay;
    return change;
}

static void change_all(struct request *request, const struct varlink_object *given, unsigned states,
                       const struct change *wanted)
{
    const bool cancels = !wanted->apply, dry_run = request_bool(request, "dry_run");
    const bool one_state = varlink_has(given, "state");
    struct job_filter filter = {0};
    const struct group *group;
    struct change *change;

    if (!take_filter(request, given, states, &filter))
        return;
    group = registry_get(request->context->registry, filter.group);
    if (!may_change_group(request, group))
        return;
    if (is_unreadable(request, group)) {
        job_walk_fail(request);
        return;
    }
    change = change_new(request, wanted);
    if (!change)
        return;
    change->bulk.dry_run = dry_run;
    change->bulk.cancels = cancels;
    change->last_round = !cancels || dry_run || one_state;
    if (!change->last_round)
        filter.states &= ~(1u << JOB_RUNNING);
    change->walk = (struct job_walk){
        .parts = &change->bulk.parts,
        .filter = filter,
        .on_disk = can_read(request->context->groups),
        .must_read = true,
        .changes = cancels && !dry_run,
        .whole = !cancels && !dry_run,
        .rows_left = SIZE_MAX,
        .visit = visit,
    };
    if (!dry_run)
        control_log_change(request, varlink_string(given, "group"));
    request_in_parts(request, &change->bulk.parts);
}

/* The parameters of this call are those of the filter. */
static void cancel_all(struct request *request)
{
    change_all(request, &request->parameters, JOB_FILTER_LIVE, &(struct change){0});
}

/* `states`: of the jobs that the call changes. */
static bool may_change_job(struct request *request, unsigned states, const struct job *job)
{
    if (job_ended(job)) {
        control_refuse_ended(request, job->state);
    } else if (!access_cancel(request, job)) {
        access_refuse_submit(request, job->group);
    } else if (!(states & 1u << job->state) || (job->record && durable_job_is_settled(job))) {
        request_fail_strings(request, "NotWaiting", "id", request_string(request, "id"), "state",
                             job_state_to_string(job->state));
    } else {
        return true;
    }
    return false;
}

static void change_by_id(struct request *request, unsigned states, const struct change *wanted)
{
    struct job *job;
    struct change *change;

    if (!access_submits_somewhere(request)) {
        access_refuse_submit(request, NULL);
        return;
    }
    job = control_find_job(request, request_string(request, "id"), control_refuse_unknown);
    if (!job || !may_change_job(request, states, job))
        return;
    change = change_new(request, wanted);
    if (!change)
        return;
    change->one = job;
    change->bulk.parts.step = change_only;
    request_in_parts(request, &change->bulk.parts);
}

/* The call has either an id or a filter. */
static void change_jobs(struct request *request, unsigned states, const struct change *wanted)
{
    const bool has_id = request_has(request, "id");
    struct varlink_object given;

    if (varlink_object(&request->parameters, "filter", &given) == has_id)
        request_refuse(request, "id", "either this or filter");
    else if (has_id && request_bool(request, "dry_run"))
        request_refuse(request, "dry_run", "only with filter");
    else if (has_id)
        change_by_id(request, states | 1u << JOB_QUEUED, wanted);
    else
        change_all(request, &given, states, wanted);
}

/* Whether jobs can move there; if not, an error has been sent. */
static bool check_target(struct request *request, const struct group *to)
{
    const int r = group_takes_jobs(to);

    if (r == CELL_E_STOPPING)
        request_fail(request, refusal_of(r)->varlink);
    else if (r != 0)
        request_fail_strings(request, refusal_of(r)->varlink, "group", to->name, "problem",
                             r == CELL_E_BAD_FILE ? group_fault_text(to) : NULL);
    return r == 0;
}

/* A filter names one group, so the call can be refused as a whole. */
static bool check_durability(struct request *request, const struct group *to)
{
    struct registry_target from = {0};
    struct varlink_object given;

    if (!varlink_object(&request->parameters, "filter", &given) ||
        registry_resolve_ever(request->context->registry, varlink_string(&given, "group"), &from) <
            0 ||
        from.group->config->durable == to->config->durable)
        return true;
    request_fail_strings(request, refusal_of(CELL_E_DURABLE)->varlink, "group", from.group->name,
                         "to", to->name);
    return false;
}

static void move(struct request *request)
{
    const struct group *to = control_take_group(request, request_string(request, "to"));

    if (to && check_target(request, to) && check_durability(request, to))
        change_jobs(request, JOBS_PENDED,
                    &(struct change){.apply = move_job, .to = to->reference, .priority = -1});
}

static void set(struct request *request)
{
    const int64_t priority = request_int(request, "priority", -1);
    const usec_t delay = varlink_usec(&request->parameters, "delay_usec", 0);

    if (priority < 0 && delay == 0)
        request_refuse(request, "priority", "this or delay_usec");
    else if (request_range(request, "priority", 0, QUEUE_PRIORITIES - 1) &&
             (priority < 0 || control_may_prioritise(request, (uint8_t)priority)) &&
             (delay <= JOB_DELAY_MAX || request_refuse(request, "delay_usec", "at most 366 days")))
        change_jobs(request, delay > 0 ? JOBS_WAITING : JOBS_PENDED,
                    &(struct change){.apply = set_job, .priority = priority, .delay = delay});
}

static void run_now(struct request *request)
{
    change_jobs(request, JOBS_DELAYED, &(struct change){.apply = release_job, .priority = -1});
}

const struct request_method control_change_methods[] = {
    {"CancelAll", cancel_all, .changes = true, .submits = true},
    {"Move", move, .changes = true},
    {"Set", set, .changes = true, .submits = true},
    {"RunNow", run_now, .changes = true, .submits = true},
    {0},
};
