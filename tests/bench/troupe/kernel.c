/* SPDX-License-Identifier: MIT */

/* kernel: a job whose payload is a number makes two system calls so often. The result is what each
 * takes: one that the kernel knows to be allowed without asking filters, and one whose arguments
 * they look at. */

#include "tests/bench/load/samples.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static double each_ns(unsigned long long count, long (*call)(void))
{
    const uint64_t begin = samples_now();

    for (unsigned long long i = 0; i < count; i++)
        (void)call();
    return (double)(samples_now() - begin) / (double)count;
}

static long plain(void)
{
    return syscall(SYS_getppid);
}

/* Filters look at the family. It fails everywhere: there is no such type of socket. */
static long with_arguments(void)
{
    return syscall(SYS_socket, AF_UNIX, -1, 0);
}

static int handle(struct troupe_job *job, void *userdata)
{
    unsigned long long count;
    char result[128];
    size_t size;

    if (sscanf(troupe_job_payload(job, &size), "%llu", &count) != 1 || count == 0)
        return -EINVAL;
    snprintf(result, sizeof(result), "{\"plain_ns\": %.2f, \"arguments_ns\": %.2f}",
             each_ns(count, plain), each_ns(count, with_arguments));
    return troupe_job_succeed(job, result, strlen(result));
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
