/* SPDX-License-Identifier: MIT */
#pragma once

struct job;
struct request;

/*
 * Finds a job, live or kept, also one that waits on disk only. Returns it, or NULL; then `missing`
 * has been called, or is called in a later turn, or the call is executed again in one, when the job
 * has been read into memory. `error` is 0 or as of job_lookup_begin().
 */
struct job *control_find_job(struct request *request, const char *id,
                             void (*missing)(struct request *request, int error));
