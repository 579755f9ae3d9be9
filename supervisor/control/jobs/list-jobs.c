/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs.List. The cursor is an index of the job table, which is constant for each job. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/paged-list.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job.h"
#include <string.h>

struct jobs_parameters {
    const char *group;
    struct varlink_int state;
    bool ended;
    struct control_page page;
};

struct jobs {
    struct control_list list;
    uint64_t group;  /* reference; 0 = all groups */
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
           (jobs->group == 0 || job->group->reference == jobs->group) &&
           (!jobs->key || has_key(job, jobs->key));
}

static bool step(struct control_list *list)
{
    const struct control_context *context = list->parts.request->context;
    const struct job *job;

    if (list->cursor >= context->jobs->handles.n_entries)
        return false;
    job = handle_table_at(&context->jobs->handles, (uint32_t)list->cursor++);
    if (job && is_wanted(jobs_of(list), job))
        report_job(control_list_item(list), NULL, list->parts.request, job, REPORT_DETAIL_MAX);
    return true;
}

/* The wanted states as bits. */
static unsigned states_of(const struct jobs_parameters *given)
{
    const unsigned live = (1u << JOB_SUCCEEDED) - 1, all = (1u << _JOB_N_STATES) - 1;

    if (given->state.set)
        return 1u << given->state.value;
    return given->ended ? all : live;
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

static void list_jobs(struct request *request)
{
    const struct jobs_parameters *given = request->parameters;
    struct jobs wanted = {.list.step = step, .states = states_of(given)};
    struct jobs *jobs;

    if (given->group && !find_group(request, given->group, &wanted))
        return;
    jobs = request_allocate(request, sizeof(*jobs));
    if (!jobs)
        return;
    *jobs = wanted;
    control_list(request, &jobs->list, "jobs", &given->page);
}

/* The words of `state` are in the order of enum job_state. */
static const struct varlink_parameter list_table[] = {
    VARLINK_ROW("group", STRING, jobs_parameters, group),
    VARLINK_ROW("state", CHOICE, jobs_parameters, state,
                .allowed =
                    "queued, running, backoff, delayed, succeeded, rejected, cancelled, dead"),
    VARLINK_ROW("ended", BOOL, jobs_parameters, ended),
    CONTROL_PAGE_ROWS(jobs_parameters),
    {0},
};

const struct request_method control_list_jobs_methods[] = {
    {"List", list_jobs, list_table, .changes = false},
    {0},
};
