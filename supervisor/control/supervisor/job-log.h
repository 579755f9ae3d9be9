/* SPDX-License-Identifier: MIT */
#pragma once

/* GetLog of a job: the lines that are kept of it, in whatever groups, and lines as they come. */

#include <stdbool.h>

struct request;

/* Answers the call. `id` is borrowed from it. */
void control_job_log(struct request *request, const char *id, bool follow);
