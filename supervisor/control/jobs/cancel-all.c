/* SPDX-License-Identifier: MIT */

/*
 * io.troupe.Jobs.CancelAll. Waiting jobs come first, so that they do not begin when running ones
 * end; a second round catches those that began during the first.
 */

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

/* Cancellations that are being written at a time. */
#define WRITING_MAX 1024
/* The cost of cancelling a job, relative to looking at one. */
#define CANCEL_COST 8

struct cancel_all {
    struct bulk bulk;
    struct job_walk walk; /* texts of the filter are borrowed from the call */
    bool last_round;
};

#define cancel_all_of(pointer) list_entry(bulk_of(pointer), struct cancel_all, bulk)

/* Counts the cancellation when it is on disk. */
static void await_written(struct bulk *bulk, struct job *job)
{
    struct job_waiter *waiter = job_waiter_new(bulk->context->jobs, job);
    struct bulk_write *write = waiter ? bulk_write_new(bulk, NULL) : NULL;

    if (!write) {
        if (waiter)
            job_waiter_free(bulk->context->jobs, waiter);
        bulk_fail(bulk, -ENOMEM);
        return;
    }
    waiter->changed = bulk_on_written;
    waiter->owner = write;
    durable_job_await(job, waiter);
}

static void cancel_one(struct bulk *bulk, struct job *job)
{
    const uid_t uid = bulk->parts.request->connection->peer.uid;

    switch (cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, uid)) {
    case 0:
        bulk->n_done++;
        break;
    case CELL_CANCEL_E_WAIT:
        await_written(bulk, job);
        break;
    default:
        break; /* it has ended */
    }
}

static void visit(struct job_walk *walk, struct job *job, struct loaded_job *row)
{
    struct bulk *bulk = bulk_of(walk->parts);
    int r = 0;

    if (job_cancel_requested(job))
        return;
    if (bulk->dry_run) {
        bulk->n_done++;
        return;
    }
    if (row)
        r = job_lookup_take(bulk->context->groups, row, &job);
    if (r == 0)
        cancel_one(bulk, job);
    else if (r != CELL_E_MISSING)
        bulk_fail(bulk, r);
    (void)request_part_full(walk->parts, CANCEL_COST - 1);
}

/* Whether rows can be read, if only once the store is open. */
static bool can_read(const struct group_context *groups)
{
    const struct store *store = groups->durable->store;

    return job_filter_can_read(groups) || (store && store_state(store) == STORE_OPENING);
}

static bool cancel_next(struct request_parts *parts)
{
    struct cancel_all *all = cancel_all_of(parts);

    parts->waits = all->bulk.n_writes >= WRITING_MAX;
    if (parts->waits || job_walk_step(&all->walk))
        return true;
    if (all->last_round) {
        parts->waits = all->bulk.n_writes > 0;
        return parts->waits;
    }
    all->last_round = true;
    all->walk.filter.states = JOB_FILTER_LIVE;
    all->walk.on_disk = can_read(all->bulk.context->groups);
    parts->cursor = 0;
    return true;
}

static void free_all(struct request_parts *parts)
{
    job_walk_end(&cancel_all_of(parts)->walk);
    bulk_deinit(bulk_of(parts));
    free(cancel_all_of(parts));
}

static void finish(struct request_parts *parts)
{
    struct reply *reply = request_part_reply(parts);

    bulk_report(bulk_of(parts), reply, "cancelled");
    if (bulk_of(parts)->dry_run)
        reply_uint(reply, "until_at", cancel_all_of(parts)->walk.filter.until);
}

/* False: an error has been sent. */
static bool take_filter(struct request *request, struct job_filter *ret)
{
    const struct varlink_bytes key = varlink_bytes(&request->parameters, "key");
    const char *cause = request_string(request, "cause");
    const int state = varlink_choice(&request->parameters, "state");
    const usec_t now = loop_realtime(request->context->loop);

    if (!request_range(request, "until_at", 1, INT64_MAX) ||
        !job_filter_take_group(ret, request, request_string(request, "group")))
        return false;
    if (key.data && ret->key.data)
        return request_refuse(request, "key", "only with a whole group");
    if (key.data)
        ret->key = key;
    ret->cause = attempt_cause_from_string(cause ? cause : "");
    ret->states = state >= 0 ? 1u << state : JOB_FILTER_LIVE & ~(1u << JOB_RUNNING);
    ret->until = varlink_usec(&request->parameters, "until_at", now);
    if (ret->until > now)
        ret->until = now;
    return true;
}

/* Whether jobs of the group wait on disk, or may do so, and cannot be read. */
static bool is_unreadable(const struct request *request, const struct job_filter *filter)
{
    const struct group *group = registry_get(request->context->registry, filter->group);

    return group && !can_read(request->context->groups) &&
           (group->counts.n[JOBS_ON_DISK] > 0 ||
            (group->config->durable && group->rows != GROUP_READ));
}

static void cancel_all(struct request *request)
{
    const bool one_state = request_has(request, "state");
    struct job_filter filter = {0};
    struct cancel_all *all;

    if (!take_filter(request, &filter))
        return;
    if (is_unreadable(request, &filter)) {
        job_walk_fail(request);
        return;
    }
    all = request_allocate(request, sizeof(*all));
    if (!all)
        return;
    bulk_init(&all->bulk, request);
    all->bulk.dry_run = request_bool(request, "dry_run");
    all->bulk.parts =
        (struct request_parts){.step = cancel_next, .finish = finish, .free = free_all};
    all->last_round = all->bulk.dry_run || one_state;
    if (all->bulk.dry_run && !one_state)
        filter.states = JOB_FILTER_LIVE;
    all->walk = (struct job_walk){
        .parts = &all->bulk.parts,
        .filter = filter,
        .on_disk = can_read(request->context->groups),
        .must_read = true,
        .changes = !all->bulk.dry_run,
        .rows_left = SIZE_MAX,
        .visit = visit,
    };
    if (!all->bulk.dry_run)
        control_log_change(request, request_string(request, "group"));
    request_in_parts(request, &all->bulk.parts);
}

const struct request_method control_cancel_methods[] = {
    {"CancelAll", cancel_all, .changes = true},
    {0},
};
