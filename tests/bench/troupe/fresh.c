/* SPDX-License-Identifier: MIT */

/* The result of each job is the pid. May have a template. */

#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int handle(struct troupe_job *job, void *unused)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%d", (int)getpid());
    return troupe_job_succeed(job, text, strlen(text));
}

int main(void)
{
    struct troupe_worker *worker;
    int r = troupe_template_run(NULL);

    if (r < 0)
        return r != -ESHUTDOWN;
    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, handle, NULL);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
