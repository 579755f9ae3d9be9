/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs.List. The cursor is an index of the job table, which is constant for each job. */

#include "supervisor/control/jobs/list-jobs.h"

#include "supervisor/control/control-context.h"
#include "supervisor/control/list.h"
#include "supervisor/control/payload.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATES_ALLOWED "queued, running, backoff, delayed, succeeded, rejected, cancelled, dead"

struct jobs_parameters {
    const char *group, *state;
    bool ended;
    struct control_page page;
};

struct jobs {
    struct control_list list;
    bool all;        /* groups */
    uint64_t group;  /* else the reference of this one */
    const char *key; /* NULL = all; borrowed from the call */
    unsigned states; /* a bit per enum job_state */
};

#define jobs_of(pointer) list_entry(pointer, struct jobs, list)

static bool has_key(const struct job *job, const char *key)
{
    return job->key_size == strlen(key) && memcmp(job->key, key, job->key_size) == 0;
}

/* A job without a group has ended and exists only for clients that still receive its result. */
static bool is_wanted(const struct jobs *jobs, const struct job *job)
{
    return job->group && (jobs->states & 1u << job->state) != 0 &&
           (jobs->all || job->group->reference == jobs->group) &&
           (!jobs->key || has_key(job, jobs->key));
}

static bool step(struct control_list *list)
{
    const struct access access = access_of(list->parts.request);
    const struct control_context *context = access.context;
    const struct job *job;

    if (list->cursor >= job_table_size(context->jobs))
        return false;
    job = job_table_at(context->jobs, (uint32_t)list->cursor++);
    if (job && is_wanted(jobs_of(list), job))
        report_job(control_list_item(list), NULL, &access, job, REPORT_DETAIL_MAX);
    return true;
}

/* The wanted states as bits; 0 = unknown state. */
static unsigned states_of(const struct jobs_parameters *given)
{
    const unsigned live = (1u << JOB_SUCCEEDED) - 1, all = (1u << _JOB_N_STATES) - 1;

    if (!given->state)
        return given->ended ? all : live;
    for (unsigned i = 0; i < _JOB_N_STATES; i++)
        if (strcmp(job_state_to_string((enum job_state)i), given->state) == 0)
            return 1u << i;
    return 0;
}

/* Takes "group" or "group/key", whose cell may be gone. On false, an error has been sent. */
static bool find_group(struct request *request, const char *name, struct jobs *jobs)
{
    struct registry_target target = {0};
    const char *slash = strchr(name, '/');

    if (registry_resolve_ever(request->context->registry, name, &target) < 0 || target.slot ||
        (slash && strchr(slash + 1, '/'))) {
        control_refuse_group(request, name);
        return false;
    }
    jobs->group = target.group->reference;
    jobs->key = slash ? slash + 1 : NULL;
    return true;
}

void control_list_jobs(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"group", VARLINK_STRING, false, offsetof(struct jobs_parameters, group)},
        {"state", VARLINK_STRING, false, offsetof(struct jobs_parameters, state)},
        {"ended", VARLINK_BOOL, false, offsetof(struct jobs_parameters, ended)},
        CONTROL_PAGE_ROWS(struct jobs_parameters),
        {0},
    };
    struct jobs_parameters parameters = {0};
    struct jobs wanted = {.list = {.step = step}}, *jobs;

    if (!request_take(request, table, &parameters) || !control_take_page(request, &parameters.page))
        return;
    wanted.states = states_of(&parameters);
    if (wanted.states == 0) {
        control_refuse_option(request, "state", STATES_ALLOWED);
        return;
    }
    wanted.all = !parameters.group;
    if (parameters.group && !find_group(request, parameters.group, &wanted))
        return;
    jobs = malloc(sizeof(*jobs));
    if (!jobs) {
        request_internal(request, -ENOMEM);
        return;
    }
    *jobs = wanted;
    control_list(request, &jobs->list, "jobs", &parameters.page);
}
