/* SPDX-License-Identifier: MIT */
/* Finds the jobs that a call names. Jobs that wait on disk only are matched by their rows. */
#include "supervisor/control/jobs/jobs.h"

#include "shared/base/cleanup.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/group/registry.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-load.h"
#include "supervisor/store/job-number.h"
#include "supervisor/varlink/request-parts.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- many ---- */

bool job_filter_take_group(struct job_filter *filter, struct request *request, const char *name)
{
    struct registry_target target = {0};
    const char *slash = strchr(name, '/');

    if (registry_resolve_ever(request->context->registry, name, &target) < 0 || target.slot ||
        (slash && strchr(slash + 1, '/'))) {
        control_refuse_group(request, name);
        return false;
    }
    filter->group = target.group->reference;
    if (slash)
        filter->key = (struct varlink_bytes){slash + 1, strlen(slash + 1)};
    return true;
}

static bool has_key(const struct job_filter *filter, const char *key, size_t size)
{
    return !filter->key.data ||
           (size == filter->key.size && memcmp(filter->key.data, key, size) == 0);
}

static bool has_cause(const struct job_filter *filter, const struct job *job)
{
    return filter->cause == ATTEMPT_CAUSE_NONE || job->failed_by == filter->cause;
}

static bool has_text(const struct job_filter *filter, const struct job *job)
{
    char text[PROTOCOL_ID_TEXT];
    const char *id = job_format_id(job, text);

    return !filter->text.data || varlink_bytes_in(&filter->text, id, strlen(id)) ||
           varlink_bytes_in(&filter->text, job->key, job->key_size);
}

/* A job without a group has ended and exists only for clients that still receive its result. */
static bool matches(const struct job_filter *filter, const struct job *job)
{
    return job->group && (filter->states & 1u << job->state) != 0 &&
           (filter->group == 0 || job->group->reference == filter->group) &&
           job->created_at >= filter->since && job->created_at <= filter->until &&
           has_key(filter, job->key, job->key_size) && has_cause(filter, job) &&
           has_text(filter, job);
}

bool job_filter_can_read(const struct group_context *groups)
{
    const struct store *store = groups->durable->store;

    return store && (store_state(store) == STORE_OPEN || store_state(store) == STORE_FULL);
}

/* Room for what a row says of a job that is not in memory. */
struct row_job {
    struct job job;
    struct job_pause pause;
    char name[PROTOCOL_ID_TEXT];
};

static void describe_row(const struct group_context *groups, const struct job_row *row,
                         struct row_job *room)
{
    const struct protocol_id id =
        job_number_to_id(store_id_key(groups->durable->store), row->number);
    struct job *job = &room->job;

    *job = (struct job){
        .id_high = id.high,
        .id_low = id.low,
        .state = row->state == JOB_ROW_DELAYED   ? JOB_DELAYED
                 : row->state == JOB_ROW_BACKOFF ? JOB_BACKOFF
                                                 : JOB_QUEUED,
        .facts = row->facts,
        .group = registry_find_text(groups->registry, row->group, row->group_size),
        .key = (char *)(uintptr_t)row->key,
        .key_size = (uint8_t)row->key_size,
        .pause = &room->pause,
    };
    room->pause.alarm.date = row->due;
    room->pause.alarm.delay = row->delay;
    if (row->name_size > 0 && row->name_size < PROTOCOL_ID_TEXT) {
        job->name = memcpy(room->name, row->name, row->name_size);
        job->name[row->name_size] = '\0';
    }
}

static void offer(struct job_walk *walk, struct job *job, struct loaded_job *row)
{
    if (matches(&walk->filter, job))
        walk->visit(walk, job, row);
}

/* Payloads that are read at a time. */
#define WHOLE_BYTES_MAX (UINT64_C(16) << 20)

static void pick(struct job_walk *walk, int64_t number)
{
    if (!walk->picked && (walk->picked = job_load_new(JOB_LOAD_QUERY_MAX)))
        walk->picked->n = 0;
    if (!walk->picked) {
        request_part_reply(walk->parts)->error = -ENOMEM;
        return;
    }
    walk->picked->entries[walk->picked->n++].number = number;
}

static void offer_row(struct job_walk *walk, struct loaded_job *row, bool is_whole)
{
    const struct group_context *groups = walk->parts->request->context->groups;
    struct job *job = durable_job_find(groups->durable, &row->row);
    struct row_job room;

    if (job) {
        offer(walk, job, NULL);
    } else if (row->row.state < _JOB_ROW_N_STATES) { /* else a result that has expired */
        describe_row(groups, &row->row, &room);
        if (!walk->whole || is_whole)
            offer(walk, &room.job, row);
        else if (matches(&walk->filter, &room.job))
            pick(walk, row->row.number);
    }
}

/* A bit of the cursor: the other bits are an index of the job table. */
#define IN_MEMORY (UINT64_C(1) << 62)

static void offer_rows(struct job_walk *walk, const struct job_load *load)
{
    for (size_t i = 0; i < load->n_read; i++) {
        walk->parts->cursor = (uint64_t)load->entries[i].number;
        offer_row(walk, load->entries[i].job, false);
    }
    if (load->n_read < load->n)
        walk->parts->cursor = IN_MEMORY;
}

void job_walk_fail(struct request *request)
{
    request_fail_string(request, "StoreFailed", "problem",
                        job_lookup_problem(request->context->groups));
}

/* The store has failed: continues in the job table. If no row was visited, that includes durable
 * jobs. */
static void leave_disk(struct job_walk *walk)
{
    walk->on_disk = walk->parts->cursor != 0;
    walk->parts->cursor = IN_MEMORY;
}

static void read_picked(struct job_walk *walk);

/* Continues after a load of the walk, which may have left the store. */
static void end_reading(struct job_walk *walk, int result)
{
    if (!walk || result == -ECANCELED) /* the supervisor ends, and answers open calls itself */
        return;
    if (result < 0 && walk->must_read) {
        job_walk_fail(walk->parts->request);
        return;
    }
    if (result < 0)
        leave_disk(walk);
    if (walk->picked)
        read_picked(walk);
    else
        request_parts_resume(walk->parts);
}

static void offer_whole(struct job_walk *walk, const struct job_load *load)
{
    for (size_t i = 0; i < load->n_read; i++)
        if (load->entries[i].job)
            offer_row(walk, load->entries[i].job, true);
    for (size_t i = load->n_read; i < load->n; i++)
        pick(walk, load->entries[i].number);
}

static void on_whole(struct store_task *task, int result)
{
    struct job_load *load = job_load_of(task);
    struct job_walk *walk = load->owner;

    if (walk)
        walk->reading = NULL;
    if (walk && result == 0)
        offer_whole(walk, load);
    job_load_free(load);
    end_reading(walk, result);
}

static void read_picked(struct job_walk *walk)
{
    struct job_load *load = TAKE_PTR(walk->picked);

    load->bytes_max = WHOLE_BYTES_MAX;
    load->owner = walk;
    load->task.query = true;
    load->task.asker = walk->parts->request->connection->peer.uid;
    load->task.done = on_whole;
    walk->reading = load;
    store_add(walk->parts->request->context->durable->store, &load->task);
}

/* A job that is not in memory in this turn has not changed since its row was read. */
static void on_rows(struct store_task *task, int result)
{
    struct job_load *load = job_load_of(task);
    struct job_walk *walk = load->owner;
    struct durable_jobs *durable = walk ? walk->parts->request->context->groups->durable : NULL;

    if (walk && result == 0 && walk->must_read && !durable_jobs_are_known(durable)) {
        durable_jobs_ask_later(durable, task);
        return;
    }
    if (walk)
        walk->reading = NULL;
    if (walk && result == 0)
        offer_rows(walk, load);
    job_load_free(load);
    end_reading(walk, result);
}

/* Reads rows after the cursor: at most as many as the page may still read. */
static void read_rows(struct job_walk *walk)
{
    const size_t max = JOB_LOAD_QUERY_MAX;
    struct request_parts *parts = walk->parts;
    struct job_load *load = job_load_new(walk->rows_left < max ? walk->rows_left : max);

    if (!load) {
        request_part_reply(parts)->error = -ENOMEM;
        return;
    }
    walk->rows_left -= load->n;
    load->kind = walk->ended ? LOAD_ALL : LOAD_JOBS;
    load->after = (int64_t)parts->cursor;
    load->owner = walk;
    load->task.query = true;
    load->task.asker = parts->request->connection->peer.uid;
    load->task.done = on_rows;
    walk->reading = load;
    store_add(parts->request->context->durable->store, &load->task);
}

static void step_disk(struct job_walk *walk)
{
    if (!walk->reading && walk->rows_left == 0) {
        walk->parts->left = 0; /* the next page continues on disk */
        return;
    }
    if (!walk->reading)
        read_rows(walk);
    walk->parts->waits = walk->reading != NULL;
}

bool job_walk_step(struct job_walk *walk)
{
    const struct job_table *jobs = walk->parts->request->context->jobs;
    const uint64_t index = walk->parts->cursor & ~IN_MEMORY;
    struct job *job;

    if (walk->on_disk && !(walk->parts->cursor & IN_MEMORY)) {
        step_disk(walk);
        return true;
    }
    if (index >= jobs->handles.n_entries)
        return false;
    walk->parts->cursor = IN_MEMORY | (index + 1);
    job = handle_table_at(&jobs->handles, (uint32_t)index);
    if (job && (walk->changes || !(job->record && walk->on_disk)))
        offer(walk, job, NULL);
    return true;
}

void job_walk_end(struct job_walk *walk)
{
    if (walk->reading)
        job_load_leave(walk->reading, walk->parts->request->context->durable->store);
    (void)job_load_free(walk->picked);
}

/* ---- one ---- */

/* A call for a job that is read from disk. */
struct search {
    struct job_lookup lookup;
    struct request *request;
    void (*missing)(struct request *request, int error);
};

static void drop_search(struct request *request)
{
    struct search *search = request->state;

    job_lookup_end(&search->lookup);
    free(search);
}

static void on_found(struct job_lookup *lookup, struct job *job, int error)
{
    const struct search search = *list_entry(lookup, struct search, lookup);
    struct request *request = search.request;

    drop_search(request);
    request->state = NULL;
    request->drop = NULL;
    if (job)
        request->method->call(request);
    else
        search.missing(request, error);
}

/* Returns 0, or an error of job_lookup_begin(). */
static int search_job(struct request *request, const struct protocol_id *id,
                      void (*missing)(struct request *, int))
{
    struct search *search = calloc(1, sizeof(*search));
    int r;

    if (!search)
        return -ENOMEM;
    search->request = request;
    search->missing = missing;
    search->lookup.found = on_found;
    r = job_lookup_begin(&search->lookup, request->context->groups, id,
                         request->connection->peer.uid);
    if (r != 0) {
        free(search);
        return r;
    }
    request->state = search;
    request->drop = drop_search;
    return 0;
}

struct job *control_find_job(struct request *request, const char *id,
                             void (*missing)(struct request *request, int error))
{
    struct job *job = NULL;
    struct protocol_id parsed;
    int r = CELL_E_MISSING;

    if (protocol_id_parse(&parsed, id) == 0) {
        job = job_by_id(request->context->jobs, &parsed);
        /* A job without a group has ended and exists only for clients that still receive its
         * result. */
        if (job && job->group)
            return job;
        if (!job)
            r = search_job(request, &parsed, missing);
    }
    if (r != 0)
        missing(request, r);
    return NULL;
}
