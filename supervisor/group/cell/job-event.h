/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Events of single jobs: accepted, started, retried, ended. There may be hundreds of thousands of
 * them per second, so they are neither logged nor kept, and cost one comparison while nobody
 * watches.
 */

#include "supervisor/event/event.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/job/job.h"

/* Sends an event of a job that is still its cell's; the message is the job's id and the formatted
 * text. `worker` may be NULL. */
void job_event_tell(const struct job *job, const char *type, const char *worker, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/* Like job_event_tell(), but only if somebody watches; otherwise evaluates only `job`. */
#define job_event(job, ...)                                                                        \
    do {                                                                                           \
        if (!list_empty(&(job)->cell->context->events->job_subscribers))                           \
            job_event_tell((job), __VA_ARGS__);                                                    \
    } while (0)
