/* SPDX-License-Identifier: MIT */

/*
 * io.troupe.Jobs.CancelAll. Waiting jobs come first, so that they do not begin when running ones
 * end; a second round catches those that began during the first. A round looks at the rows of jobs
 * on disk, then at those in memory.
 */

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
#include "supervisor/store/job-load.h"
#include "supervisor/varlink/request-parts.h"
#include <errno.h>
#include <stdlib.h>

/* Cancellations that are being written at a time. */
#define WRITING_MAX 1024
/* The cost of cancelling a job, relative to looking at one. */
#define CANCEL_COST 8

struct cancel_all {
    struct request_parts parts;
    struct job_filter filter; /* texts borrowed from the call */
    bool dry_run;
    bool last_round;
    bool reads;            /* this round includes jobs on disk */
    bool on_disk;          /* and more of them are to be read */
    struct job_load *rows; /* being read */
    int64_t row;           /* the last one that was looked at */
    uint32_t index;        /* in the job table */
    struct list writing;   /* struct job_waiter.owner_link */
    size_t n_writing;
    uint64_t n_cancelled, n_failed;
    const char *problem; /* of the last that failed; static */
};

#define cancel_all_of(pointer) list_entry(pointer, struct cancel_all, parts)

static void resume(struct cancel_all *all)
{
    if (all->parts.waits && !all->rows)
        request_parts_resume(&all->parts);
}

static void note_failure(struct cancel_all *all, int error)
{
    const struct refusal *refusal = refusal_of(error);

    all->n_failed++;
    all->problem = refusal ? refusal->text : strerrordesc_np(-error);
}

/* The cancellation is on disk, or could not be written. */
static void on_written(struct job_waiter *waiter, struct job *job)
{
    struct cancel_all *all = waiter->owner;

    job_waiter_free(all->parts.request->context->jobs, waiter);
    all->n_writing--;
    if (job->refusal != 0)
        note_failure(all, job->refusal);
    else if (!job_ended(job) || job->state == JOB_CANCELLED)
        all->n_cancelled++;
    if (all->n_writing == 0)
        resume(all);
}

static void await_written(struct cancel_all *all, struct job *job)
{
    struct job_waiter *waiter = job_waiter_new(all->parts.request->context->jobs, job);

    if (!waiter) {
        note_failure(all, -ENOMEM);
        return;
    }
    waiter->changed = on_written;
    waiter->owner = all;
    list_push_back(&all->writing, &waiter->owner_link);
    all->n_writing++;
    durable_job_await(job, waiter);
}

static void cancel_one(struct cancel_all *all, struct job *job)
{
    const uid_t uid = all->parts.request->connection->peer.uid;

    switch (cell_cancel(job, PROTOCOL_CAUSE_REQUESTED, uid)) {
    case 0:
        all->n_cancelled++;
        break;
    case CELL_CANCEL_E_WAIT:
        await_written(all, job);
        break;
    default:
        break; /* it has ended */
    }
}

static bool is_wanted(const struct cancel_all *all, const struct job *job)
{
    return !job_cancel_requested(job) && job_filter_matches(&all->filter, job);
}

/* Returns whether the job matches. */
static bool visit(struct cancel_all *all, struct job *job)
{
    if (!is_wanted(all, job))
        return false;
    if (all->dry_run)
        all->n_cancelled++;
    else
        cancel_one(all, job);
    return true;
}

/* ---- on disk ---- */

static void visit_row(struct cancel_all *all, struct loaded_job *loaded)
{
    const struct group_context *groups = all->parts.request->context->groups;
    struct row_job room;
    const struct job *described = row_job_of(groups, &loaded->row, &room);
    struct job *job = durable_job_find(groups->durable, &loaded->row);
    int r = 0;

    if (!described || !is_wanted(all, described))
        return;
    if (all->dry_run) {
        all->n_cancelled++;
        return;
    }
    if (!job)
        r = job_lookup_take(groups, loaded, &job);
    if (r == 0)
        cancel_one(all, job);
    else if (r != CELL_E_MISSING)
        note_failure(all, r);
}

static void fail_reading(struct request *request)
{
    request_fail_string(request, "StoreFailed", "problem",
                        job_lookup_problem(request->context->groups));
}

static void visit_rows(struct cancel_all *all, const struct job_load *load)
{
    for (size_t i = 0; i < load->n_read; i++)
        visit_row(all, load->entries[i].job);
    if (load->n_read > 0)
        all->row = load->entries[load->n_read - 1].number;
    all->on_disk = load->n_read == load->n;
}

/* The rows are those of this turn: a job that is not in memory waits on disk as they say. */
static void on_rows(struct store_task *task, int result)
{
    struct job_load *load = job_load_of(task);
    struct cancel_all *all = load->owner;

    if (all && result == 0 && !durable_jobs_are_known(all->parts.request->context->durable)) {
        durable_jobs_ask_later(all->parts.request->context->groups->durable, task);
        return;
    }
    if (all && result == 0)
        visit_rows(all, load);
    if (all)
        all->rows = NULL;
    job_load_free(load);
    if (all && result == 0)
        resume(all);
    else if (all && result != -ECANCELED) /* else what waits is told why it ends */
        fail_reading(all->parts.request);
}

/* Returns whether they come. */
static bool read_rows(struct cancel_all *all)
{
    struct job_load *load = job_load_new(JOB_LOAD_QUERY_MAX);

    if (!load) {
        note_failure(all, -ENOMEM);
        all->on_disk = false;
        return false;
    }
    load->lists = true;
    load->after = all->row;
    load->owner = all;
    load->task.query = true;
    load->task.done = on_rows;
    all->rows = load;
    store_add(all->parts.request->context->durable->store, &load->task);
    return true;
}

/* ---- rounds ---- */

/* Whether rows can be read, if only once the store is open. */
static bool can_read(const struct group_context *groups)
{
    const struct store *store = groups->durable->store;

    return job_filter_can_read(groups) || (store && store_state(store) == STORE_OPENING);
}

static void begin_round(struct cancel_all *all, const struct group_context *groups)
{
    all->reads = all->on_disk = can_read(groups);
    all->row = 0;
    all->index = 0;
}

static void step_memory(struct cancel_all *all)
{
    const struct job_table *jobs = all->parts.request->context->jobs;
    struct job *job = handle_table_at(&jobs->handles, all->index++);
    /* A dry run has counted jobs that have a row. */
    const bool counted =
        all->dry_run && all->reads && job && job->record && durable_job_is_known(job);

    if (job && !counted && visit(all, job))
        (void)request_part_full(&all->parts, CANCEL_COST - 1);
}

/* Returns whether something is left to do. */
static bool end_round(struct cancel_all *all)
{
    if (all->last_round) {
        all->parts.waits = all->n_writing > 0;
        return all->parts.waits;
    }
    all->last_round = true;
    all->filter.states = JOB_FILTER_LIVE;
    begin_round(all, all->parts.request->context->groups);
    return true;
}

static bool cancel_next(struct request_parts *parts)
{
    struct cancel_all *all = cancel_all_of(parts);

    if (all->n_writing >= WRITING_MAX || (all->on_disk && read_rows(all)))
        parts->waits = true;
    else if (all->index < parts->request->context->jobs->handles.n_entries)
        step_memory(all);
    else
        return end_round(all);
    return true;
}

static void free_all(struct request_parts *parts)
{
    struct cancel_all *all = cancel_all_of(parts);

    if (all->rows)
        job_load_leave(all->rows, parts->request->context->durable->store);
    list_for_each_safe (node, &all->writing)
        job_waiter_free(parts->request->context->jobs,
                        list_entry(node, struct job_waiter, owner_link));
    free(all);
}

static void finish(struct request_parts *parts)
{
    const struct cancel_all *all = cancel_all_of(parts);
    struct reply *reply = request_part_reply(parts);

    reply_uint(reply, "cancelled", all->n_cancelled);
    reply_uint(reply, "failed", all->n_failed);
    if (all->dry_run)
        reply_uint(reply, "until_at", all->filter.until);
    if (all->problem)
        reply_string(reply, "problem", all->problem);
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
    const bool dry_run = request_bool(request, "dry_run");
    const bool one_state = request_has(request, "state");
    struct job_filter filter = {0};
    struct cancel_all *all;

    if (!take_filter(request, &filter))
        return;
    if (is_unreadable(request, &filter)) {
        fail_reading(request);
        return;
    }
    all = request_allocate(request, sizeof(*all));
    if (!all)
        return;
    all->parts = (struct request_parts){.step = cancel_next, .finish = finish, .free = free_all};
    all->filter = filter;
    all->dry_run = dry_run;
    all->last_round = dry_run || one_state;
    if (dry_run && !one_state)
        all->filter.states = JOB_FILTER_LIVE;
    list_init(&all->writing);
    begin_round(all, request->context->groups);
    if (!dry_run)
        control_log_change(request, request_string(request, "group"));
    request_in_parts(request, &all->parts);
}

const struct request_method control_cancel_methods[] = {
    {"CancelAll", cancel_all, .changes = true},
    {0},
};
