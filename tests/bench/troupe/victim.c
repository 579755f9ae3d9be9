/* SPDX-License-Identifier: MIT */

/*
 * A worker to be killed. It stamps the beginning of its main(). A payload of 8 bytes is a size: it
 * touches as much memory, stamps that, and never ends the job. Any other job has its own stamp,
 * taken when it began, as its result.
 */

#include "tests/bench/load/samples.h"
#include "tests/bench/load/stamp.h"
#include "worker/troupe.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOUCH_BYTES 4096 /* a page, at most */

static int handle(struct troupe_job *job, void *userdata)
{
    size_t size;
    uint64_t n_bytes;
    struct stamp begun = {.kind = STAMP_JOB, .pid = (uint64_t)getpid(), .ns = samples_now()};
    const void *data = troupe_job_payload(job, &size);
    volatile char *memory; /* or the compiler sees that nobody reads it, and touches nothing */

    if (size != sizeof(n_bytes))
        return troupe_job_succeed(job, &begun, sizeof(begun));
    memcpy(&n_bytes, data, sizeof(n_bytes));
    memory = malloc(n_bytes + 1);
    if (!memory)
        return troupe_job_retry(job, 1, "no memory");
    for (uint64_t i = 0; i < n_bytes; i += TOUCH_BYTES)
        memory[i] = 1;
    stamp_write(STAMP_BUSY);
    for (;;)
        (void)pause();
}

int main(void)
{
    struct troupe_worker *worker;

    stamp_write(STAMP_MAIN);
    int r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, handle, NULL);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
