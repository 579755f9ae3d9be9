/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Events of single jobs: accepted, started, retried, ended. There may be hundreds of thousands of
 * them in a second, so they are neither logged nor kept, and cost one comparison while nobody
 * watches.
 */

struct job;

/* Each is called right after it happened; the job is still its cell's. */
void job_event_accepted(const struct job *job);
void job_event_started(const struct job *job); /* by the worker that has it */
/* An attempt at `worker` failed, and there will be another one. `cause`: as of an attempt. */
void job_event_retried(const struct job *job, const char *worker, const char *cause);
void job_event_ended(const struct job *job);
