/* SPDX-License-Identifier: MIT */
/* Jobs that a request names, and that wait on disk only, are read first. */

#include "shared/base/cleanup.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/job-lookup.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Searches for one job after the other. */
struct search {
    struct job_lookup lookup;
    struct cell_waiter *waiter;
    struct protocol_id id; /* of the last job */
    bool looks;            /* the search for it runs */
    bool missed;           /* it was not found: `error`, 0 = there is none */
    int error;
    size_t n;
    struct job *found[JOB_PARENTS_MAX + 2]; /* with references: they stay in memory */
};

void group_end_search(struct cell_waiter *waiter)
{
    struct search *search = TAKE_PTR(waiter->search);

    search->lookup.context->end_lookup(&search->lookup);
    while (search->n > 0)
        job_unref(search->lookup.context->jobs, search->found[--search->n]);
    free(search);
}

static void on_found(struct job_lookup *lookup, struct job *job, int error)
{
    struct search *search = (struct search *)lookup;

    search->looks = false;
    search->missed = !job;
    search->error = error;
    if (job && search->n < ELEMENTS(search->found))
        search->found[search->n++] = job_ref(job);
    search->waiter->turn(search->waiter);
}

static struct search *take_search(const struct group *group, struct cell_waiter *waiter)
{
    struct search *search = waiter->search;

    if (search)
        return search;
    search = calloc(1, sizeof(*search));
    if (!search)
        return NULL;
    search->waiter = waiter;
    search->lookup.context = group->context;
    search->lookup.found = on_found;
    waiter->search = search;
    waiter->end_search = group_end_search;
    return search;
}

static bool is_same(const struct protocol_id *a, const struct protocol_id *b)
{
    return a->high == b->high && a->low == b->low && strcmp(a->name, b->name) == 0;
}

int group_search(const struct group *group, const struct cell_request *request,
                 const struct protocol_id *id)
{
    struct search *search = request->waiter ? take_search(group, request->waiter) : NULL;
    int r;

    if (!search)
        return request->waiter ? -ENOMEM : CELL_E_BUSY;
    if (search->looks)
        return CELL_E_WAIT;
    if (search->missed && is_same(&search->id, id))
        return search->error;
    r = group->context->begin_lookup(&search->lookup, group->context, id, request->submitter_uid);
    search->id = *id;
    search->looks = r == 0;
    if (r == CELL_E_MISSING)
        return 0;
    return r == 0 ? CELL_E_WAIT : r;
}
