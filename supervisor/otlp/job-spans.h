/* SPDX-License-Identifier: MIT */
#pragma once

/* Makes spans of the events of jobs with a traceparent that is sampled: "create" when a job is
 * accepted, "wait" until a worker begins it, and "process" for each attempt. The first two and the
 * first attempt are children of the submitter's span. Another attempt is a trace of its own, with a
 * link to the first one; its "wait" stays with the submitter's. */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/base/share.h"
#include "supervisor/otlp/exporter.h"
#include <jansson.h>

/* Jobs that have not ended. Beyond that number, the one with the oldest event is forgotten of a
 * group with at least an equal share. */
#define JOB_SPANS_MAX 10000u

struct job_spans {
    struct exporter *exporter; /* borrowed */
    struct index by_id;        /* struct traced_job */
    struct shares shares;      /* of the jobs, by group */
    bool contents;             /* texts of workers and jobs go into spans */
};

void job_spans_init(struct job_spans *spans, struct exporter *exporter, bool contents);
void job_spans_deinit(struct job_spans *spans);

/* Takes an event of the supervisor, of any type. */
void job_spans_take(struct job_spans *spans, const json_t *event, usec_t now);
