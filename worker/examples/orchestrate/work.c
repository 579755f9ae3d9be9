/* SPDX-License-Identifier: MIT */

/*
 * The worker: one item at a time. It requests the item's data from its source, waits for it at most
 * the given time, and ends the item in any case: with a result, or with the reason why there is
 * none, which it logs. So an item never occupies its worker forever.
 */

#include "worker/examples/orchestrate/load.h"
#include "worker/examples/orchestrate/orchestrate.h"
#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOURCE_TIMEOUT_MSEC 30000

struct work {
    struct load load;
    const char *bell; /* a FIFO: each item waits for a byte from it; NULL = none */
};

/* FNV-1a, 64 bits: stands for the work that is done with the data. */
static uint64_t digest(const char *data, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void wait_for_bell(const struct work *work)
{
    int fd = work->bell ? open(work->bell, O_RDONLY | O_CLOEXEC) : -1;
    char byte;

    if (fd < 0)
        return;
    while (read(fd, &byte, 1) < 0 && errno == EINTR)
        ;
    close(fd);
}

/* Rejects the job, since another attempt would fail in the same way. */
static int refuse(struct troupe_job *job, const char *item, int error, const char *reason)
{
    fprintf(stderr, "orchestrate: item %s: %s\n", item, reason);
    return troupe_job_reject(job, -error, reason, strlen(reason));
}

static int handle(struct troupe_job *job, void *userdata)
{
    struct work *work = userdata;
    char item[ORCHESTRATE_ITEM_MAX + 1], result[64], *data = NULL;
    const char *payload;
    size_t size;
    int r;

    payload = troupe_job_payload(job, &size);
    if (size == 0 || size >= ORCHESTRATE_ITEM_MAX || memchr(payload, '\n', size) ||
        memchr(payload, '\0', size))
        return refuse(job, troupe_job_id(job), -EINVAL, "want NAME SIZE [fail|crash|hang]");
    memcpy(item, payload, size);
    item[size] = '\0';
    wait_for_bell(work);
    r = load_item(&work->load, item, &data, &size);
    if (r < 0)
        return refuse(job, item, r, work->load.reason);
    r = snprintf(result, sizeof(result), "%zu bytes, %016llx", size,
                 (unsigned long long)digest(data, size));
    free(data); /* before the next item can be begun */
    return troupe_job_succeed(job, result, (size_t)r);
}

static void tear_down(struct troupe_worker *worker, void *userdata)
{
    struct work *work = userdata;

    (void)worker;
    load_end(&work->load);
}

static int parse(struct work *work, int argc, char *argv[])
{
    static const struct option options[] = {{"source-timeout", required_argument, NULL, 't'},
                                            {"bell", required_argument, NULL, 'b'},
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            work->bell = optarg;
        else if (option != 't' || orchestrate_number(optarg, &work->load.timeout_msec) < 0 ||
                 work->load.timeout_msec == 0 || work->load.timeout_msec > INT32_MAX)
            return -EINVAL;
    }
    return optind == argc ? 0 : -EINVAL;
}

int orchestrate_work(int argc, char *argv[])
{
    struct work work = {.load = LOAD_NULL};
    struct troupe_worker *worker;
    int r;

    work.load.timeout_msec = SOURCE_TIMEOUT_MSEC;
    if (parse(&work, argc, argv) < 0) {
        fputs("orchestrate work [--source-timeout=MSEC] [--bell=FIFO]\n", stderr);
        return 2;
    }
    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, handle, &work);
    troupe_worker_on_scope(worker, NULL, tear_down, &work);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}
