/* SPDX-License-Identifier: MIT */
/* Finds the jobs that a new one waits for, and the batch that it joins: see job/job-ties.h. */

#include "shared/base/cleanup.h"
#include "supervisor/group/cell/cell-ties.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- jobs that wait on disk only are read first ---- */

#define BATCH JOB_PARENTS_MAX

/* All that were found stay in memory until the new job is accepted or refused. */
struct search {
    struct job_lookup lookup;
    struct cell_waiter *waiter;
    size_t at; /* which parent was looked for last; BATCH */
    bool looks;
    int errors[JOB_PARENTS_MAX + 1]; /* what to say of each that is not in memory; 0 = not known */
    size_t n;
    struct job *found[JOB_PARENTS_MAX + 1]; /* with references */
};

static void end_search(struct cell_waiter *waiter)
{
    struct search *search = TAKE_PTR(waiter->parents);

    if (search->looks)
        search->lookup.context->end_lookup(&search->lookup);
    while (search->n > 0)
        job_unref(search->lookup.context->jobs, search->found[--search->n]);
    free(search);
}

static void on_found(struct job_lookup *lookup, struct job *job, int error)
{
    struct search *search = (struct search *)lookup;

    search->looks = false;
    search->errors[search->at] = error != 0 ? error : CELL_E_NO_PARENT;
    if (job && search->n < ELEMENTS(search->found))
        search->found[search->n++] = job_ref(job);
    search->waiter->turn(search->waiter);
}

static struct search *take_search(const struct group *group, struct cell_waiter *waiter)
{
    struct search *search = waiter->parents;

    if (search)
        return search;
    search = calloc(1, sizeof(*search));
    if (!search)
        return NULL;
    search->waiter = waiter;
    search->lookup.context = group->context;
    search->lookup.found = on_found;
    waiter->parents = search;
    waiter->end_parents = end_search;
    return search;
}

/* Returns CELL_E_WAIT while a job that is not in memory is looked for, or CELL_E_*. */
static int look_on_disk(const struct group *group, const struct cell_request *request,
                        const struct protocol_id *id, size_t which)
{
    struct search *search = request->waiter ? request->waiter->parents : NULL;
    int r;

    if (search && search->looks)
        return CELL_E_WAIT;
    if (search && search->errors[which] != 0)
        return search->errors[which];
    if (!group->context->durable->store)
        return CELL_E_NO_PARENT;
    if (!request->waiter)
        return CELL_E_BUSY;
    search = take_search(group, request->waiter);
    if (!search)
        return -ENOMEM;
    r = group->context->begin_lookup(&search->lookup, group->context, id);
    if (r != 0)
        return r == CELL_E_MISSING ? CELL_E_NO_PARENT : r;
    search->at = which;
    search->looks = true;
    return CELL_E_WAIT;
}

/* ---- jobs that are known ---- */

/* Finds the job. `which`: the number of a parent, or BATCH. Returns 0 with it, CELL_E_NO_PARENT,
 * CELL_E_WAIT, CELL_E_*, or -ENOMEM. */
static int find_job(const struct group *group, const struct cell_request *request, const char *text,
                    size_t which, struct job **ret)
{
    struct protocol_id id;
    struct job *job;

    if (protocol_id_parse(&id, text) < 0)
        return CELL_E_NO_PARENT;
    job = job_by_id(group->context->jobs, &id);
    if (!job)
        return look_on_disk(group, request, &id, which);
    if (job->refusal != 0)
        return CELL_E_NO_PARENT;
    if (!job_ended(job) && job->record &&
        (!durable_job_is_known(job) || durable_job_is_settled(job)))
        return cell_await_row(request, job);
    *ret = job;
    return 0;
}

static int take_letter(const struct group *group, struct tie_request *ties,
                       struct tie_parent *parent)
{
    const struct group_context *context = group->context;
    const struct dead_letter *letter =
        dead_letter_of_job(&context->messages->dead_letters, parent->id);
    struct job job = {0};

    if (!letter)
        return CELL_E_NO_PARENT;
    job.submitter_uid = letter->submitter_uid;
    job.group = context->group_of(context->registry, letter->recipient);
    if (!ties->may_read(ties->userdata, &job))
        return CELL_E_UNREADABLE;
    if (group->config->durable && letter->row == 0)
        return CELL_E_NOT_DURABLE;
    parent->key = (struct tie_key){.value = (uint64_t)letter->row, .durable = letter->row != 0};
    parent->end = JOB_DEAD;
    return 0;
}

static int find_parent(const struct group *group, const struct cell_request *request,
                       struct tie_parent *parent)
{
    struct tie_request *ties = request->rare->ties;
    struct job *job = NULL;
    int r = find_job(group, request, parent->id, (size_t)(parent - ties->parents), &job);

    if (r == CELL_E_NO_PARENT)
        return take_letter(group, ties, parent);
    if (r != 0)
        return r;
    if (!ties->may_read(ties->userdata, job))
        return CELL_E_UNREADABLE;
    if (group->config->durable && !job->record)
        return CELL_E_NOT_DURABLE;
    parent->job = job;
    parent->key = cell_tie_key(job);
    parent->end = job_ended(job) ? (uint8_t)job->state : 0;
    return 0;
}

static int find_batch(const struct group *group, const struct cell_request *request)
{
    struct tie_request *ties = request->rare->ties;
    const struct batch_tally *tally;
    struct job *job = NULL;
    int r = find_job(group, request, ties->batch, BATCH, &job);

    if (r != 0)
        return r;
    if (!job_is_batch(job))
        return CELL_E_NO_BATCH;
    if (!ties->may_change(ties->userdata, job))
        return CELL_E_UNREADABLE;
    tally = &job_own_ties(job)->tally;
    if (job_ended(job) || (!tally->open && tally->live == 0))
        return CELL_E_BATCH_OVER;
    if (group->config->durable != (job->record != NULL))
        return CELL_E_NOT_DURABLE;
    ties->joins = job;
    return 0;
}

/* Whether the job would wait for the batch that waits for it. */
static bool waits_for_own_batch(const struct tie_request *ties)
{
    for (size_t i = 0; i < ties->n; i++)
        if (ties->joins && ties->parents[i].job == ties->joins)
            return true;
    return false;
}

static int find_all(const struct group *group, const struct cell_request *request)
{
    struct tie_request *ties = request->rare->ties;
    int r = 0;

    for (size_t i = 0; r == 0 && i < ties->n; i++) {
        (void)memcpy(ties->problem, ties->parents[i].id, sizeof(ties->problem));
        r = find_parent(group, request, &ties->parents[i]);
    }
    if (r != 0 || ties->batch[0] == '\0')
        return r;
    (void)memcpy(ties->problem, ties->batch, sizeof(ties->problem));
    r = find_batch(group, request);
    return r == 0 && waits_for_own_batch(ties) ? CELL_E_BATCH_OVER : r;
}

int group_submit_tied(struct group *group, const struct cell_request *request, struct job **ret)
{
    int r = find_all(group, request);

    if (r == 0)
        r = group_submit_untied(group, request, ret);
    if (r != CELL_E_WAIT && request->waiter && request->waiter->parents)
        end_search(request->waiter);
    return r;
}
