/* SPDX-License-Identifier: MIT */
#include "supervisor/control/jobs/job-search.h"

#include "supervisor/control/control-context.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/job/job.h"
#include "supervisor/varlink/request.h"
#include <errno.h>
#include <stdlib.h>

/* A call for a job that is read from disk. */
struct search {
    struct job_lookup lookup;
    struct request *request;
    void (*missing)(struct request *request, int error);
};

static void drop_search(struct request *request)
{
    struct search *search = request->state;

    job_lookup_end(&search->lookup);
    free(search);
}

static void on_found(struct job_lookup *lookup, struct job *job, int error)
{
    const struct search search = *list_entry(lookup, struct search, lookup);
    struct request *request = search.request;

    drop_search(request);
    request->state = NULL;
    request->drop = NULL;
    if (job)
        request->method->call(request);
    else
        search.missing(request, error);
}

/* Returns 0, or an error of job_lookup_begin(). */
static int search_job(struct request *request, const struct protocol_id *id,
                      void (*missing)(struct request *, int))
{
    struct search *search = calloc(1, sizeof(*search));
    int r;

    if (!search)
        return -ENOMEM;
    search->request = request;
    search->missing = missing;
    search->lookup.found = on_found;
    r = job_lookup_begin(&search->lookup, request->context->groups, id);
    if (r != 0) {
        free(search);
        return r;
    }
    request->state = search;
    request->drop = drop_search;
    return 0;
}

struct job *control_find_job(struct request *request, const char *id,
                             void (*missing)(struct request *request, int error))
{
    struct job *job = NULL;
    struct protocol_id parsed;
    int r = -ESRCH;

    if (protocol_id_parse(&parsed, id) == 0) {
        job = job_by_id(request->context->jobs, &parsed);
        /* A job without a group has ended and exists only for clients that still receive its
         * result. */
        if (job && job->group)
            return job;
        if (!job)
            r = search_job(request, &parsed, missing);
    }
    if (r != 0)
        missing(request, r);
    return NULL;
}
