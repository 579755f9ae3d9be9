/* SPDX-License-Identifier: MIT */
/* The options of a job: the submitter's or the group's, and which of them the submitter chose. */

#include "supervisor/config/config-group.h"
#include "supervisor/job/job.h"
#include "supervisor/job/queue.h"

enum {
    CHOSE_RETRIES = 1 << 0,
    CHOSE_TIMEOUT = 1 << 1,
    CHOSE_BACKOFF_MIN = 1 << 2,
    CHOSE_BACKOFF_MAX = 1 << 3,
    CHOSE_PRIORITY = 1 << 4,
};

#define CHOOSE(option, none, bit, default_value)                                                   \
    job->option = (default_value);                                                                 \
    if (asked->option != (none)) {                                                                 \
        job->option = asked->option;                                                               \
        chosen |= (bit);                                                                           \
    }

void job_set_options(struct job *job, const struct job_options *asked,
                     const struct config_group *config)
{
    unsigned chosen = 0;

    CHOOSE(max_retries, PROTOCOL_DEFAULT_RETRIES, CHOSE_RETRIES, config->max_retries)
    CHOOSE(timeout, PROTOCOL_DEFAULT_USEC, CHOSE_TIMEOUT, config->timeout)
    CHOOSE(backoff_min, PROTOCOL_DEFAULT_USEC, CHOSE_BACKOFF_MIN, config->backoff_min)
    CHOOSE(backoff_max, PROTOCOL_DEFAULT_USEC, CHOSE_BACKOFF_MAX, config->backoff_max)
    CHOOSE(priority, PROTOCOL_DEFAULT_PRIORITY, CHOSE_PRIORITY, QUEUE_PRIORITY_DEFAULT)
    job->chosen = (uint8_t)chosen;
    if (job->timeout == 0)
        job->timeout = USEC_INFINITY;
    /* A job may ask for longer pauses than its group's longest. */
    if (!(chosen & CHOSE_BACKOFF_MAX) && job->backoff_max < job->backoff_min)
        job->backoff_max = job->backoff_min;
}

struct job_options job_asked(const struct job *job)
{
    struct job_options asked = JOB_OPTIONS_DEFAULT;

    if (job->chosen & CHOSE_PRIORITY)
        asked.priority = job->priority;
    if (job->chosen & CHOSE_RETRIES)
        asked.max_retries = job->max_retries;
    if (job->chosen & CHOSE_TIMEOUT)
        asked.timeout = job->timeout;
    if (job->chosen & CHOSE_BACKOFF_MIN)
        asked.backoff_min = job->backoff_min;
    if (job->chosen & CHOSE_BACKOFF_MAX)
        asked.backoff_max = job->backoff_max;
    return asked;
}
