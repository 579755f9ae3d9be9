/* SPDX-License-Identifier: MIT */

/* Finds the jobs of CANCEL and WAIT records, also those that are on disk only. */

#include "supervisor/client/attachment-private.h"

#include "supervisor/group/cell/cell-submit.h"
#include <errno.h>
#include <stdlib.h>

/* Jobs that are read for one client at a time. */
#define SEARCHES_MAX 1024u

static bool is_cancel(enum attachment_wait wait)
{
    return wait == WAIT_FOR_CANCEL || wait == WAIT_FOR_WITHDRAW;
}

static void search_free(struct search *search)
{
    job_lookup_end(&search->lookup);
    list_unlink(&search->link);
    search->attachment->n_searches--;
    free(search);
}

static void end_search(struct search *search)
{
    struct attachment *attachment = search->attachment;

    search_free(search);
    if (attachment->n_searches == SEARCHES_MAX - 1)
        endpoint_resume(&attachment->endpoint);
    if (attachment->finish && attachment->n_searches == 0)
        task_queue(attachment->finish);
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

/* Any error of an answer means a broken endpoint, whose client is being removed. */
static void on_found(struct job_lookup *lookup, struct job *job, int error)
{
    struct search *search = list_entry(lookup, struct search, lookup);

    /* The job for whose end a client waits may have been accepted, so a failed search must not look
     * like a refusal. */
    if (error != 0 && (search->wait == WAIT_FOR_END || search->wait == WAIT_FOR_OWN_END))
        error = CELL_E_UNSURE;
    if (error != 0)
        (void)attachment_refuse_submit(search->attachment, search->cookie, error);
    else
        (void)call(search->attachment, search->wait, search->cookie, job);
    end_search(search);
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
        r = job_lookup_begin(&search->lookup, context, &wanted->id, attachment->uid);
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
    if (is_cancel(wait) && attachment->n_searches >= SEARCHES_MAX)
        return ENDPOINT_E_LATER;
    if (attachment->n_searches >= SEARCHES_MAX)
        return attachment_refuse(attachment, wanted->cookie, EBUSY, "too many jobs are looked for");
    if (attachment_search(attachment, wanted, wait) < 0)
        return attachment_refuse_errno(attachment, wanted->cookie, -ENOMEM);
    return 0;
}

void attachment_drop_searches(struct attachment *attachment, bool all)
{
    list_for_each_entry_safe (search, &attachment->searches, struct search, link)
        if (all || !is_cancel(search->wait))
            search_free(search);
}
