/* SPDX-License-Identifier: MIT */
/*
 * A worker that writes into the file $DIARY when it begins and when it has done a job:
 *
 *   start JOB ATTEMPT TIME
 *   end JOB ATTEMPT TIME
 *
 * TIME: nanoseconds of CLOCK_REALTIME, as NATS uses it. The payload is "NAME USEC CRASHES": the job
 * takes so long, its first attempts crash, and its result is NAME.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void note(int diary, const char *what, const struct troupe_job *job)
{
    struct timespec now;
    char line[256];
    int n;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    n = snprintf(line, sizeof(line), "%s %s %u %jd%09ld\n", what, troupe_job_id(job),
                 troupe_job_attempt(job), (intmax_t)now.tv_sec, now.tv_nsec);
    /* In one write(2), which other workers cannot split. */
    if (n >= (int)sizeof(line) || write(diary, line, (size_t)n) != n)
        _exit(99);
}

static int handle(struct troupe_job *job, void *userdata)
{
    const int diary = *(const int *)userdata;
    char text[128], name[32];
    unsigned usec, crashes;
    size_t size;
    const void *payload = troupe_job_payload(job, &size);

    snprintf(text, sizeof(text), "%.*s", (int)size, (const char *)payload);
    if (sscanf(text, "%31s %u %u", name, &usec, &crashes) != 3)
        return -EINVAL;
    note(diary, "start", job);
    (void)nanosleep(&(struct timespec){usec / 1000000, (long)(usec % 1000000) * 1000}, NULL);
    if (troupe_job_attempt(job) <= crashes)
        raise(SIGKILL);
    note(diary, "end", job);
    return troupe_job_succeed(job, name, strlen(name));
}

int main(void)
{
    const char *path = getenv("DIARY");
    struct troupe_worker *worker;
    int r = troupe_worker_new(&worker);
    int diary = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;

    if (r < 0 || diary < 0)
        return 1;
    troupe_worker_on_job(worker, handle, &diary);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
