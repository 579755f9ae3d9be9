/* SPDX-License-Identifier: MIT */
/* The options of a job: their bounds, and the submitter's or the group's, and which of them the
 * submitter chose. */

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
    job->cost = asked->cost;
    if (job->timeout == 0)
        job->timeout = USEC_INFINITY;
    /* A job may ask for longer pauses than its group's longest. */
    if (!(chosen & CHOSE_BACKOFF_MAX) && job->backoff_max < job->backoff_min)
        job->backoff_max = job->backoff_min;
}

void job_set_priority(struct job *job, uint8_t priority)
{
    job->priority = priority;
    job->chosen |= CHOSE_PRIORITY;
}

struct job_options job_asked(const struct job *job)
{
    struct job_options asked = JOB_OPTIONS_DEFAULT;

    asked.cost = job->cost;
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

/* ---- bounds ---- */

static bool is_long(usec_t backoff)
{
    return backoff != PROTOCOL_DEFAULT_USEC && backoff > JOB_BACKOFF_MAX;
}

static const struct job_options_problem *check_backoff(const struct job_options *options)
{
    static const struct job_options_problem min_long = {"backoff_min_usec", "at most 1 day"};
    static const struct job_options_problem max_long = {"backoff_max_usec", "at most 1 day"};
    static const struct job_options_problem crossed = {"backoff_min_usec",
                                                       "at most backoff_max_usec"};

    if (is_long(options->backoff_min))
        return &min_long;
    if (is_long(options->backoff_max))
        return &max_long;
    if (options->backoff_min != PROTOCOL_DEFAULT_USEC &&
        options->backoff_max != PROTOCOL_DEFAULT_USEC &&
        options->backoff_min > options->backoff_max)
        return &crossed;
    return NULL;
}

const struct job_options_problem *job_options_check(const struct job_options *options)
{
    static const struct job_options_problem retries = {"max_retries", "0 to 1000000"};
    static const struct job_options_problem priority = {"priority", "0 (first) to 63 (last)"};

    if (options->max_retries != PROTOCOL_DEFAULT_RETRIES && options->max_retries > JOB_RETRIES_MAX)
        return &retries;
    if (options->priority != PROTOCOL_DEFAULT_PRIORITY && options->priority >= QUEUE_PRIORITIES)
        return &priority;
    return check_backoff(options);
}
