/* SPDX-License-Identifier: MIT */

/* echo [RESULT]: the payload, or its first RESULT bytes, is the result. */

#include "worker/troupe.h"
#include <stdint.h>
#include <stdlib.h>

static int handle(struct troupe_job *job, void *userdata)
{
    const size_t *result_max = userdata;
    size_t size;
    const void *data = troupe_job_payload(job, &size);

    return troupe_job_succeed(job, data, size < *result_max ? size : *result_max);
}

int main(int argc, char **argv)
{
    size_t result_max = argc > 1 ? strtoull(argv[1], NULL, 10) : SIZE_MAX;
    struct troupe_worker *worker;
    int r = troupe_worker_new(&worker);

    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, handle, &result_max);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
