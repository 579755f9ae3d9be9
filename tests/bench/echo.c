/* SPDX-License-Identifier: MIT */

/* The worker of the benchmarks: the payload is the result. */

#include "../../worker/troupe.h"
#include <stddef.h>

static int handle(struct troupe_job *job, void *userdata)
{
    size_t size;
    const void *data = troupe_job_payload(job, &size);

    (void)userdata;
    return troupe_job_succeed(job, data, size);
}

int main(void)
{
    struct troupe_worker *worker;
    int r = troupe_worker_new(&worker);

    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, handle, NULL);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
