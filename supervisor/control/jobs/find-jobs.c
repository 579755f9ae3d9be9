/* SPDX-License-Identifier: MIT */
/* Finds the jobs that a call names. Jobs that wait on disk only are matched by their rows. */
#include "supervisor/control/jobs/jobs.h"

#include "supervisor/control/control-context.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/group/registry.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-number.h"
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

/* A job without a group has ended and exists only for clients that still receive its result. */
bool job_filter_matches(const struct job_filter *filter, const struct job *job)
{
    return job->group && (filter->states & 1u << job->state) != 0 &&
           (filter->group == 0 || job->group->reference == filter->group) &&
           job->created_at <= filter->until && has_key(filter, job->key, job->key_size) &&
           has_cause(filter, job);
}

bool job_filter_can_read(const struct group_context *groups)
{
    const struct store *store = groups->durable->store;

    return store && (store_state(store) == STORE_OPEN || store_state(store) == STORE_FULL);
}

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
        .timers = &room->timers,
    };
    room->timers.alarm.date = row->due;
    room->timers.alarm.has_date = row->delay == 0;
    if (row->name_size > 0 && row->name_size < PROTOCOL_ID_TEXT) {
        job->name = memcpy(room->name, row->name, row->name_size);
        job->name[row->name_size] = '\0';
    }
}

const struct job *row_job_of(const struct group_context *groups, const struct job_row *row,
                             struct row_job *room)
{
    const struct job *in_memory = durable_job_find(groups->durable, row);

    if (in_memory)
        return in_memory;
    if (row->state >= _JOB_ROW_N_STATES)
        return NULL;
    describe_row(groups, row, room);
    return &room->job;
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
    r = job_lookup_begin(&search->lookup, request->context->groups, id);
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
