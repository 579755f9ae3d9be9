/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs.List. First come durable jobs, where the cursor is the number of a row, then the
 * others, where it is an index of the job table. Both are constant for each job. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/jobs.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-load.h"
#include "supervisor/varlink/request-parts.h"
#include <stdlib.h>

/* A bit of the cursor: an index of the job table follows. */
#define IN_MEMORY (UINT64_C(1) << 62)

struct jobs {
    struct request_parts parts;
    struct job_filter filter;
    bool on_disk;             /* durable jobs are listed from disk */
    struct job_load *reading; /* rows that the store is reading; NULL = none */
    struct job_load *rows;    /* rows that were read; NULL = none */
    size_t next_row;          /* in `rows` */
    size_t rows_left;         /* how many this page may still read */
};

#define jobs_of(pointer) list_entry(pointer, struct jobs, parts)

static struct store *store_of(const struct request_parts *parts)
{
    return parts->request->context->groups->durable->store;
}

static void list_job(struct request_parts *parts, const struct job *job)
{
    if (job_filter_matches(&jobs_of(parts)->filter, job))
        report_job(request_part_item(parts), NULL, parts->request, job, REPORT_DETAIL_MAX);
}

/* Lists a durable job: from memory if it is there, else it waits on disk. */
static void list_row(struct request_parts *parts, const struct job_row *row)
{
    struct row_job room;
    const struct job *job = row_job_of(parts->request->context->groups, row, &room);

    if (job)
        list_job(parts, job);
}

static void on_rows(struct store_task *task, int result)
{
    struct job_load *load = job_load_of(task);
    struct jobs *jobs = load->owner;

    if (!jobs) {
        job_load_free(load);
        return;
    }
    jobs->reading = NULL;
    jobs->rows = load;
    jobs->next_row = 0;
    if (result == -ECANCELED) /* the supervisor ends, and answers open calls itself */
        return;
    if (result < 0) {
        /* The store has failed: only jobs in memory follow. */
        jobs->on_disk = jobs->parts.cursor != 0;
        jobs->parts.cursor = IN_MEMORY;
    }
    request_parts_resume(&jobs->parts);
}

/* Reads the next piece of the rows after the cursor, within what the page may still have. */
static void read_rows(struct request_parts *parts)
{
    struct jobs *jobs = jobs_of(parts);
    const size_t max = JOB_LOAD_QUERY_MAX;
    struct job_load *load = job_load_new(jobs->rows_left < max ? jobs->rows_left : max);

    jobs->rows = job_load_free(jobs->rows);
    if (!load) {
        request_part_reply(parts)->error = -ENOMEM;
        return;
    }
    jobs->rows_left -= load->n;
    load->lists = true;
    load->ended = (jobs->filter.states & 1u << JOB_SUCCEEDED) != 0;
    load->after = (int64_t)parts->cursor;
    load->owner = jobs;
    load->task.query = true;
    load->task.done = on_rows;
    jobs->reading = load;
    parts->waits = true;
    store_add(store_of(parts), &load->task);
}

static void step_row(struct request_parts *parts)
{
    struct jobs *jobs = jobs_of(parts);
    const struct job_load *rows = jobs->rows;

    if (rows && jobs->next_row < rows->n_read) {
        const struct job_row *row = &rows->entries[jobs->next_row++].job->row;

        parts->cursor = (uint64_t)row->number;
        list_row(parts, row);
    } else if (rows && rows->n_read < rows->n) {
        parts->cursor = IN_MEMORY;
    } else if (jobs->rows_left == 0) {
        parts->left = 0; /* the next page continues on disk */
    } else {
        read_rows(parts);
    }
}

static bool step(struct request_parts *parts)
{
    const struct control_context *context = parts->request->context;
    const struct jobs *jobs = jobs_of(parts);
    const struct job *job;
    uint64_t index;

    if (jobs->on_disk && !(parts->cursor & IN_MEMORY)) {
        step_row(parts);
        return true;
    }
    index = parts->cursor & ~IN_MEMORY;
    if (index >= context->jobs->handles.n_entries)
        return false;
    parts->cursor = IN_MEMORY | (index + 1);
    job = handle_table_at(&context->jobs->handles, (uint32_t)index);
    if (job && !(job->record && jobs->on_disk))
        list_job(parts, job);
    return true;
}

/* Says why jobs that are only on disk are not listed. */
static void finish(struct request_parts *parts)
{
    const struct group_context *groups = parts->request->context->groups;
    const struct group *group = registry_get(groups->registry, jobs_of(parts)->filter.group);

    if (groups->durable->store && !job_filter_can_read(groups) &&
        (!group || group->config->durable))
        reply_string(request_part_reply(parts), "store_problem", job_lookup_problem(groups));
}

static void free_jobs(struct request_parts *parts)
{
    struct jobs *jobs = jobs_of(parts);

    if (jobs->reading)
        job_load_leave(jobs->reading, store_of(parts));
    job_load_free(jobs->rows);
    free(jobs);
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

/* While the store works, a list that has queued jobs takes all durable ones from there: the numbers
 * of their rows are the only order that stays. */
static bool is_on_disk(const struct request *request, const struct jobs *jobs)
{
    return (jobs->filter.states & 1u << JOB_QUEUED) != 0 &&
           job_filter_can_read(request->context->groups);
}

static void list_jobs(struct request *request)
{
    const char *group = request_string(request, "group");
    struct jobs wanted = {
        .parts = {.step = step, .finish = finish, .free = free_jobs},
        .filter = {.states = states_of(request), .until = USEC_INFINITY},
    };
    struct jobs *jobs;

    if (group && !job_filter_take_group(&wanted.filter, request, group))
        return;
    wanted.on_disk = is_on_disk(request, &wanted);
    jobs = request_allocate(request, sizeof(*jobs));
    if (!jobs)
        return;
    *jobs = wanted;
    jobs->rows_left = (size_t)request_int(request, "limit", REQUEST_PAGE_MAX);
    request_in_pages(request, &jobs->parts, "jobs");
}

const struct request_method control_list_jobs_methods[] = {
    {"List", list_jobs, .changes = false},
    {0},
};
