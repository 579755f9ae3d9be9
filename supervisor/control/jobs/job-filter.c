/* SPDX-License-Identifier: MIT */
#include "supervisor/control/jobs/job-filter.h"

#include "supervisor/control/control-context.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-number.h"
#include <string.h>

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
    filter->key = slash ? slash + 1 : NULL;
    return true;
}

static bool has_key(const struct job_filter *filter, const char *key, size_t size)
{
    return !filter->key || (size == strlen(filter->key) && memcmp(filter->key, key, size) == 0);
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
        .priority = row->priority,
        .cause = row->cancel,
        .submitter_uid = row->submitter_uid,
        .attempt = row->attempt,
        .max_retries = row->max_retries,
        .n_failed = row->n_failed,
        .failed_by = row->failed_by,
        .created_at = row->created_at,
        .started_at = row->started_at,
        .group = registry_find_text(groups->registry, row->group, row->group_size),
        .key = (char *)(uintptr_t)row->key,
        .key_size = row->key_size,
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
