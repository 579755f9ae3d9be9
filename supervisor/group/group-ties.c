/* SPDX-License-Identifier: MIT */
/* Finds the jobs that a new one waits for, and the batch that it joins: see job/job-ties.h. */

#include "supervisor/group/cell/cell-ties.h"
#include "supervisor/group/group-private.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/message-context.h"
#include <string.h>

static int look_on_disk(const struct group *group, const struct cell_request *request,
                        const struct protocol_id *id)
{
    int r = group->context->durable->store ? group_search(group, request, id) : 0;

    return r == 0 ? CELL_E_NO_PARENT : r;
}

/* Takes a dead letter, unless a live job on disk has its id. */
static int take_letter(const struct group *group, const struct cell_request *request,
                       struct tie *tie, const struct protocol_id *id)
{
    const struct group_context *context = group->context;
    const struct tie_request *ties = request->rare->ties;
    const struct dead_letter *letter =
        dead_letter_of_job(&context->messages->dead_letters, tie->id);
    struct job job = {0};

    if (!letter || names_on_disk_find(&context->durable->names, tie->id, strlen(tie->id)) != 0)
        return look_on_disk(group, request, id);
    job.submitter_uid = letter->submitter_uid;
    job.group = context->group_of(context->registry, letter->recipient);
    if (!ties->may_read(ties->userdata, &job))
        return CELL_E_UNREADABLE;
    if (group->config->durable && letter->row == 0)
        return CELL_E_NOT_DURABLE;
    tie->key = letter->row != 0 ? letter->row : 0;
    tie->end = JOB_DEAD;
    return 0;
}

/* Fills in what is known of the job with the id of `tie`. Returns 0, CELL_E_WAIT, CELL_E_*, or
 * -ENOMEM. */
static int find_tied(const struct group *group, const struct cell_request *request, struct tie *tie,
                     bool (*may)(void *userdata, const struct job *job))
{
    struct tie_request *ties = request->rare->ties;
    struct protocol_id id;
    struct job *job;

    ties->problem = tie->id;
    if (protocol_id_parse(&id, tie->id) < 0)
        return CELL_E_NO_PARENT;
    job = job_by_id(group->context->jobs, &id);
    if (!job)
        return take_letter(group, request, tie, &id);
    if (job->refusal != 0)
        return CELL_E_NO_PARENT;
    if (!job_ended(job) && job->record &&
        (!durable_job_is_known(job) || durable_job_is_settled(job)))
        return cell_await_row(request, job);
    if (!may(ties->userdata, job))
        return CELL_E_UNREADABLE;
    if (group->config->durable && !job->record)
        return CELL_E_NOT_DURABLE;
    tie->job = job;
    tie->key = cell_tie_key(job);
    tie->end = job_ended(job) ? (uint8_t)job->state : 0;
    return 0;
}

/* Whether the job may join the batch. */
static int check_batch(const struct group *group, const struct tie_list *list)
{
    const struct job *batch = list->batch.job;
    struct job_fate *fate;

    if (!batch || !job_is_batch(batch))
        return CELL_E_NO_BATCH;
    fate = job_own_fate(batch);
    if (fate->end != 0 || (!fate->tally.open && fate->tally.live == 0))
        return CELL_E_BATCH_OVER;
    if (group->config->durable != (batch->record != NULL))
        return CELL_E_NOT_DURABLE;
    return list->n > 0 && ties_circle(fate, list) ? CELL_E_CIRCLE : 0;
}

static int find_all(const struct group *group, const struct cell_request *request)
{
    struct tie_request *ties = request->rare->ties;
    int r = 0;

    for (unsigned i = 0; r == 0 && i < ties->list.n; i++)
        r = find_tied(group, request, &ties->list.parents[i], ties->may_read);
    if (r != 0 || ties->list.batch.id[0] == '\0')
        return r;
    r = find_tied(group, request, &ties->list.batch, ties->may_change);
    return r == 0 ? check_batch(group, &ties->list) : r;
}

int group_submit_tied(struct group *group, const struct cell_request *request, struct job **ret)
{
    int r = find_all(group, request);

    if (r == 0)
        r = group_submit_untied(group, request, ret);
    if (r != CELL_E_WAIT && request->waiter && request->waiter->search)
        group_end_search(request->waiter);
    return r;
}
