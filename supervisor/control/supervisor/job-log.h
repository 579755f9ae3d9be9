/* SPDX-License-Identifier: MIT */
#pragma once

/* GetLog of a job: the lines that are kept of it, in whatever groups, and lines as they come until
 * it has ended. */

#include <stdbool.h>

struct request;

/* The parameters of GetLog. */
struct job_log_parameters {
    const char *target, *job; /* either */
    bool follow;
};

/* Answers the call, which has `job`. */
void control_job_log(struct request *request);
