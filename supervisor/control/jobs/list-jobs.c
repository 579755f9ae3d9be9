/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs.List. First come durable jobs, where the cursor is the number of a row, then the
 * others, where it is an index of the job table. Both are constant for each job. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/paged-list.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-load.h"
#include "supervisor/store/job-number.h"
#include <stdlib.h>
#include <string.h>

/* A bit of the cursor: an index of the job table follows. */
#define IN_MEMORY (UINT64_C(1) << 62)

struct jobs_parameters {
    const char *group;
    struct varlink_int state;
    bool ended;
    struct control_page page;
};

struct jobs {
    struct control_list list;
    uint64_t group;        /* reference; 0 = all groups */
    const char *key;       /* NULL = all; borrowed from the call */
    unsigned states;       /* a bit per enum job_state */
    bool on_disk;          /* durable jobs are listed from disk */
    struct job_load *rows; /* the next of them; NULL = the list has come to the others */
    size_t next_row;
};

#define jobs_of(pointer) list_entry(pointer, struct jobs, list)

static bool has_key(const struct jobs *jobs, const char *key, size_t size)
{
    return !jobs->key || (size == strlen(jobs->key) && memcmp(jobs->key, key, size) == 0);
}

/* A job without a group has ended and exists only for clients that still receive its result. */
static bool is_wanted(const struct jobs *jobs, const struct job *job)
{
    return job->group && (jobs->states & 1u << job->state) != 0 &&
           (jobs->group == 0 || job->group->reference == jobs->group) &&
           has_key(jobs, job->key, job->key_size);
}

static void list_job(struct control_list *list, const struct job *job)
{
    if (is_wanted(jobs_of(list), job))
        report_job(control_list_item(list), NULL, list->parts.request, job, REPORT_DETAIL_MAX);
}

/* Fills in what a list shows of a job that waits on disk. It borrows from the row. */
static void describe_row(const struct group_context *groups, const struct job_row *row,
                         struct job *ret, char *name, struct job_timers *timers)
{
    const struct protocol_id id =
        job_number_to_id(store_id_key(groups->durable->store), row->number);

    *ret = (struct job){
        .id_high = id.high,
        .id_low = id.low,
        .state = row->state == JOB_ROW_DELAYED   ? JOB_DELAYED
                 : row->state == JOB_ROW_BACKOFF ? JOB_BACKOFF
                                                 : JOB_QUEUED,
        .priority = row->priority,
        .cancel_requested = row->cancel_requested,
        .submitter_uid = row->submitter_uid,
        .attempt = row->attempt,
        .max_retries = row->max_retries,
        .n_failed = row->n_failed,
        .created_at = row->created_at,
        .started_at = row->started_at,
        .group = registry_find_text(groups->registry, row->group, row->group_size),
        .key = (char *)(uintptr_t)row->key,
        .key_size = row->key_size,
        .timers = timers,
    };
    timers->alarm.date = row->due;
    if (row->name_size > 0 && row->name_size < PROTOCOL_ID_TEXT) {
        ret->name = memcpy(name, row->name, row->name_size);
        name[row->name_size] = '\0';
    }
}

/* Lists a durable job: from memory if it is there, else it waits on disk. */
static void list_row(struct control_list *list, const struct job_row *row)
{
    const struct group_context *groups = list->parts.request->context->groups;
    const struct job *in_memory = durable_job_find(groups->durable, row);
    char name[PROTOCOL_ID_TEXT];
    struct job_timers timers;
    struct job job;

    if (!in_memory && row->state >= _JOB_ROW_N_STATES)
        return; /* a result that has expired */
    if (!in_memory)
        describe_row(groups, row, &job, name, &timers);
    list_job(list, in_memory ? in_memory : &job);
}

static bool step_row(struct control_list *list)
{
    struct jobs *jobs = jobs_of(list);

    if (jobs->next_row < jobs->rows->n_read) {
        const struct job_row *row = &jobs->rows->entries[jobs->next_row++].job->row;

        list->cursor = (uint64_t)row->number;
        list_row(list, row);
    } else if (jobs->rows->n_read == jobs->rows->n) {
        list->left = 0; /* the next page continues on disk */
    } else {
        list->cursor = IN_MEMORY;
    }
    return true;
}

static bool step(struct control_list *list)
{
    const struct control_context *context = list->parts.request->context;
    const struct jobs *jobs = jobs_of(list);
    const struct job *job;
    uint64_t index;

    if (jobs->rows && !(list->cursor & IN_MEMORY))
        return step_row(list);
    index = list->cursor & ~IN_MEMORY;
    if (index >= context->jobs->handles.n_entries)
        return false;
    list->cursor = IN_MEMORY | (index + 1);
    job = handle_table_at(&context->jobs->handles, (uint32_t)index);
    if (job && !(job->record && jobs->on_disk))
        list_job(list, job);
    return true;
}

static void free_jobs(struct control_list *list)
{
    job_load_free(jobs_of(list)->rows);
    free(jobs_of(list));
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

/* While the store works, a list that has queued jobs takes all durable ones from there: the numbers
 * of their rows are the only order that stays. */
static bool is_on_disk(const struct request *request, const struct jobs *jobs)
{
    const struct store *store = request->context->groups->durable->store;

    return (jobs->states & 1u << JOB_QUEUED) != 0 && store &&
           (store_state(store) == STORE_OPEN || store_state(store) == STORE_FULL);
}

static void begin_list(struct request *request, struct jobs *jobs)
{
    const struct jobs_parameters *given = request->parameters;

    control_list(request, &jobs->list, "jobs", &given->page);
}

static void on_rows(struct store_task *task, int result)
{
    struct job_load *load = job_load_of(task);
    struct request *request = load->owner;
    struct jobs *jobs;

    if (!request) { /* the client has gone */
        job_load_free(load);
        return;
    }
    jobs = request->state;
    request->state = NULL;
    request->drop = NULL;
    if (result < 0) {
        load->n = 0; /* the store has failed */
        load->n_read = 0;
    }
    begin_list(request, jobs);
}

static void drop_rows(struct request *request)
{
    struct jobs *jobs = request->state;

    jobs->rows->owner = NULL;
    free(jobs);
}

/* Reads as many rows as the page may have. Returns false when out of memory. */
static bool read_rows(struct request *request, struct jobs *jobs)
{
    const struct jobs_parameters *given = request->parameters;
    struct job_load *load =
        job_load_new(given->page.limit.set ? (size_t)given->page.limit.value : CONTROL_PAGE_MAX);

    if (!load)
        return false;
    load->lists = true;
    load->ended = (jobs->states & 1u << JOB_SUCCEEDED) != 0;
    load->after = given->page.cursor.set ? given->page.cursor.value : 0;
    load->owner = request;
    load->task.done = on_rows;
    jobs->rows = load;
    request->state = jobs;
    request->drop = drop_rows;
    store_add(request->context->groups->durable->store, &load->task);
    return true;
}

static void list_jobs(struct request *request)
{
    const struct jobs_parameters *given = request->parameters;
    struct jobs wanted = {
        .list = {.step = step, .free = free_jobs},
        .states = states_of(given),
    };
    struct jobs *jobs;

    if (given->group && !find_group(request, given->group, &wanted))
        return;
    wanted.on_disk = is_on_disk(request, &wanted);
    jobs = request_allocate(request, sizeof(*jobs));
    if (!jobs)
        return;
    *jobs = wanted;
    if (wanted.on_disk && !(given->page.cursor.value & (int64_t)IN_MEMORY)) {
        if (read_rows(request, jobs))
            return;
        jobs->on_disk = false;
    }
    begin_list(request, jobs);
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
