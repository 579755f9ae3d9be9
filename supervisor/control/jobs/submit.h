/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks and submits the job of Create and Do. */

#include "supervisor/job/job.h"
#include "supervisor/varlink/request.h"

struct job_waiter;

#define CONTROL_KEY_ALLOWED "in a group with Cells=by-key " PROTOCOL_NAME_ALLOWED

struct control_submit_options {
    bool keep_result;
    /* As in cell_submit(), but if the result is kept, for durable jobs only; NULL = the client does
     * not wait. */
    void (*changed)(struct job_waiter *waiter, struct job *job);
    void *owner;
};

/* Answers with the error of a job that was not accepted after all: job->refusal. */
void control_refuse_job(struct request *request, const struct job *job);

/*
 * Returns the accepted job. NULL = an error has been sent, or the request waits for room in the
 * queue and will be executed again.
 */
struct job *control_submit(struct request *request, const struct control_submit_options *options);
