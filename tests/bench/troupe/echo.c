/* SPDX-License-Identifier: MIT */

/* echo [RESULT [USEC]]: the payload, or its first RESULT bytes, is the result, after so many
 * microseconds. */

#include "worker/troupe.h"
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct echo {
    size_t result_max;
    useconds_t duration;
};

static int handle(struct troupe_job *job, void *userdata)
{
    const struct echo *echo = userdata;
    size_t size;
    const void *data = troupe_job_payload(job, &size);

    if (echo->duration > 0)
        (void)usleep(echo->duration);
    return troupe_job_succeed(job, data, size < echo->result_max ? size : echo->result_max);
}

int main(int argc, char **argv)
{
    struct echo echo = {
        .result_max = argc > 1 ? strtoull(argv[1], NULL, 10) : SIZE_MAX,
        .duration = argc > 2 ? (useconds_t)strtoul(argv[2], NULL, 10) : 0,
    };
    struct troupe_worker *worker;
    int r = troupe_worker_new(&worker);

    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, handle, &echo);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
