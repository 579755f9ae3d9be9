/* SPDX-License-Identifier: MIT */

/* Finds the jobs of CANCEL and WAIT records, also those that are on disk only. */

#include "supervisor/client/attachment-private.h"

#include "supervisor/channel/answer.h"
#include "supervisor/group/cell/cell-backlog.h"
#include "supervisor/group/cell/cell-submit.h"
#include <errno.h>
#include <stdlib.h>

/* Jobs that are read for one client at a time. */
#define SEARCHES_MAX 1024u

static void search_free(struct search *search)
{
    struct job *job = search->job;

    job_lookup_end(&search->lookup);
    list_unlink(&search->link);
    search->attachment->n_searches--;
    if (job && job->parked)
        cell_backlog_review(job);
    if (job)
        job_unref(search->attachment->context->jobs, job);
    free(search);
}

static int call(struct attachment *attachment, enum attachment_wait wait, uint64_t cookie,
                struct job *job)
{
    static int (*const FOUND[_WAIT_N])(struct attachment *, uint64_t, struct job *) = {
        [WAIT_FOR_END] = attachment_watch_again,
        [WAIT_FOR_OWN_END] = attachment_watch_own_job,
        [WAIT_FOR_ANY_JOB] = attachment_watch_job,
        [WAIT_FOR_CANCEL] = attachment_cancel_job,
        [WAIT_FOR_WITHDRAW] = attachment_withdraw_job,
    };

    return FOUND[wait](attachment, cookie, job);
}

/* The job for whose end a client waits may have been accepted, so a failed search must not look
 * like a refusal. */
static int refusal_for(const struct search *search)
{
    return search->wait == WAIT_FOR_END || search->wait == WAIT_FOR_OWN_END ? CELL_E_UNSURE
                                                                            : search->error;
}

/* Returns 0, or ENDPOINT_E_FULL: it is tried again when there is room. */
static int search_answer(struct search *search)
{
    struct attachment *attachment = search->attachment;
    int r = search->error == 0
                ? call(attachment, search->wait, search->cookie, search->job)
                : attachment_refuse_submit(attachment, search->cookie, refusal_for(search));

    /* Any other error means a broken endpoint, whose client is being removed. */
    if (r == ENDPOINT_E_FULL)
        return r;
    search_free(search);
    return 0;
}

static void on_found(struct job_lookup *lookup, struct job *job, int error)
{
    struct search *search = list_entry(lookup, struct search, lookup);

    search->job = job ? job_ref(job) : NULL;
    search->error = error;
    if (search_answer(search) == ENDPOINT_E_FULL) {
        list_unlink(&search->link);
        list_push_back(&search->attachment->searched, &search->link);
    }
}

int attachment_send_searched(struct attachment *attachment)
{
    struct list *node;

    while ((node = list_first(&attachment->searched)))
        if (search_answer(list_entry(node, struct search, link)) == ENDPOINT_E_FULL)
            return ENDPOINT_E_FULL;
    return 0;
}

int attachment_search(struct attachment *attachment, const struct protocol_by_id *wanted,
                      enum attachment_wait wait)
{
    const struct group_context *context = attachment->context;
    struct job *job = job_by_id(context->jobs, &wanted->id);
    struct search *search = calloc(1, sizeof(*search));
    int r = 0;

    if (!search)
        return -ENOMEM;
    search->lookup.found = on_found;
    search->id = wanted->id;
    search->attachment = attachment;
    search->cookie = wanted->cookie;
    search->wait = wait;
    list_push_back(&attachment->searches, &search->link);
    attachment->n_searches++;
    if (!job)
        r = job_lookup_begin(&search->lookup, context, &wanted->id);
    if (job || r != 0)
        on_found(&search->lookup, job, r == CELL_E_MISSING ? 0 : r);
    return 0;
}

int attachment_find_job(struct attachment *attachment, const struct protocol_by_id *wanted,
                        enum attachment_wait wait)
{
    struct job *job = job_by_id(attachment->context->jobs, &wanted->id);

    if (job)
        return call(attachment, wait, wanted->cookie, job);
    if (attachment->n_searches >= SEARCHES_MAX)
        return answer_refuse(&attachment->endpoint, wanted->cookie, EBUSY,
                             "too many jobs are looked for");
    if (attachment_search(attachment, wanted, wait) < 0)
        return answer_errno(&attachment->endpoint, wanted->cookie, -ENOMEM);
    return 0;
}

void attachment_drop_searches(struct attachment *attachment)
{
    struct list *node;

    while ((node = list_first(&attachment->searches)) || (node = list_first(&attachment->searched)))
        search_free(list_entry(node, struct search, link));
}
