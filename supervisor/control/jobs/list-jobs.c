/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs.List. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/jobs.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/group/registry.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/varlink/request-parts.h"
#include <stdlib.h>

struct jobs {
    struct request_parts parts;
    struct job_walk walk;
};

#define jobs_of(pointer) list_entry(pointer, struct jobs, parts)

static void list_job(struct job_walk *walk, struct job *job, struct loaded_job *row)
{
    report_job(request_part_item(walk->parts), NULL, walk->parts->request, job, REPORT_DETAIL_MAX);
}

static bool step(struct request_parts *parts)
{
    return job_walk_step(&jobs_of(parts)->walk);
}

/* Says why jobs that are only on disk are not listed. */
static void finish(struct request_parts *parts)
{
    const struct group_context *groups = parts->request->context->groups;
    const struct group *group = registry_get(groups->registry, jobs_of(parts)->walk.filter.group);

    if (groups->durable->store && !job_filter_can_read(groups) &&
        (!group || group->config->durable))
        reply_string(request_part_reply(parts), "store_problem", job_lookup_problem(groups));
}

static void free_jobs(struct request_parts *parts)
{
    job_walk_end(&jobs_of(parts)->walk);
    free(jobs_of(parts));
}

/* The wanted states as bits. */
static unsigned states_of(const struct request *request)
{
    const unsigned all = (1u << _JOB_N_STATES) - 1;
    const int state = varlink_choice(&request->parameters, "state");

    if (state >= 0)
        return 1u << state;
    return request_bool(request, "ended") ? all : JOB_FILTER_LIVE;
}

static void list_jobs(struct request *request)
{
    const char *group = request_string(request, "group");
    struct job_walk walk = {
        .filter = {.states = states_of(request), .until = USEC_INFINITY},
        .rows_left = (size_t)request_int(request, "limit", REQUEST_PAGE_MAX),
        .visit = list_job,
    };
    struct jobs *jobs;

    if (group && !job_filter_take_group(&walk.filter, request, group))
        return;
    /* While the store works, a list with queued jobs reads all durable jobs from disk: only the
     * numbers of their rows are an order that does not change between pages. */
    walk.on_disk = (walk.filter.states & 1u << JOB_QUEUED) != 0 &&
                   job_filter_can_read(request->context->groups);
    walk.ended = (walk.filter.states & 1u << JOB_SUCCEEDED) != 0;
    jobs = request_allocate(request, sizeof(*jobs));
    if (!jobs)
        return;
    jobs->parts = (struct request_parts){.step = step, .finish = finish, .free = free_jobs};
    jobs->walk = walk;
    jobs->walk.parts = &jobs->parts;
    request_in_pages(request, &jobs->parts, "jobs");
}

const struct request_method control_list_jobs_methods[] = {
    {"List", list_jobs, .changes = false},
    {0},
};
