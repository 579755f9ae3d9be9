/* SPDX-License-Identifier: MIT */
#include "supervisor/process/recycle.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SPREAD 0.2

void recycle_begin(struct recycle *recycle, usec_t now, struct backoff_random *random)
{
    *recycle = (struct recycle){
        .share = 1 - SPREAD * backoff_random_next(random),
        .ready_at = now,
    };
}

/* Rounds up, so that a limit of 1 stays 1. */
static uint64_t share_of(const struct recycle *recycle, uint64_t limit)
{
    double part = (double)limit * recycle->share;
    uint64_t whole = (uint64_t)part;

    return whole + ((double)whole < part);
}

enum recycle_verdict recycle_after_job(struct recycle *recycle, const struct config_group *config,
                                       uint64_t jobs_done, usec_t now)
{
    if (config->max_jobs > 0 && jobs_done >= share_of(recycle, config->max_jobs))
        return RECYCLE_JOBS;
    if (config->max_memory == CONFIG_UNSET || (recycle->measured && now < recycle->measure_at))
        return RECYCLE_KEEP;
    recycle->measure_at = usec_add(now, RECYCLE_MEASURE_EVERY);
    return RECYCLE_MEASURE;
}

enum recycle_verdict recycle_measured(struct recycle *recycle, const struct config_group *config,
                                      uint64_t bytes)
{
    if (!recycle->measured) {
        recycle->measured = true;
        recycle->baseline = bytes;
        return RECYCLE_KEEP;
    }
    if (bytes < recycle->baseline ||
        bytes - recycle->baseline < share_of(recycle, config->max_memory))
        return RECYCLE_KEEP;
    return RECYCLE_MEMORY;
}

usec_t recycle_age_at(const struct recycle *recycle, const struct config_group *config)
{
    if (config->max_age == USEC_INFINITY)
        return USEC_INFINITY;
    return usec_add(recycle->ready_at, share_of(recycle, config->max_age));
}

int recycle_read_memory(pid_t pid, uint64_t *ret_bytes)
{
    unsigned long long size, resident, shared;
    _cleanup_close_ int fd = -1;
    char text[128];
    ssize_t n;

    (void)snprintf(text, sizeof(text), "/proc/%d/statm", (int)pid);
    fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3)
        return -EBADMSG;
    *ret_bytes = (resident > shared ? resident - shared : 0) * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

const char *recycle_reason(enum recycle_verdict verdict)
{
    switch (verdict) {
    case RECYCLE_JOBS:
        return "it has done as many jobs as it may (MaxJobs)";
    case RECYCLE_MEMORY:
        return "its memory has grown as much as it may (MaxMemory)";
    case RECYCLE_AGE:
        return "it is as old as it may be (MaxAgeSec)";
    default:
        return "";
    }
}
