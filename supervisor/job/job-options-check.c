/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-options-check.h"

#include "supervisor/job/queue.h"
#include <stddef.h>

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

static const struct job_options_problem *check_start(usec_t delay, usec_t at)
{
    static const struct job_options_problem both = {"at", "not together with delay_usec"};
    static const struct job_options_problem delay_long = {"delay_usec", "at most 366 days"};
    static const struct job_options_problem at_far = {"at", "at most 366 days from now"};

    if (delay > 0 && at > 0)
        return &both;
    if (delay > JOB_DELAY_MAX)
        return &delay_long;
    if (at > 0 && at > usec_add(clock_realtime(), JOB_DELAY_MAX))
        return &at_far;
    return NULL;
}

const struct job_options_problem *job_options_check(const struct job_options *options, usec_t delay,
                                                    usec_t at)
{
    static const struct job_options_problem retries = {"max_retries", "0 to 1000000"};
    static const struct job_options_problem priority = {"priority", "0 (first) to 63 (last)"};
    const struct job_options_problem *problem;

    if (options->max_retries != PROTOCOL_DEFAULT_RETRIES && options->max_retries > JOB_RETRIES_MAX)
        return &retries;
    if (options->priority != PROTOCOL_DEFAULT_PRIORITY && options->priority >= QUEUE_PRIORITIES)
        return &priority;
    problem = check_backoff(options);
    return problem ? problem : check_start(delay, at);
}
