/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks and submits the job of Create and Do. */

#include "supervisor/job/job.h"
#include "supervisor/varlink/request.h"

#define CONTROL_KEY_ALLOWED "in a group with Cells=by-key " PROTOCOL_NAME_ALLOWED

struct control_submit_options {
    bool keep_result;
    /* As in cell_submit(); NULL = the client does not wait. */
    void (*changed)(struct job_waiter *waiter, struct job *job);
    void *owner;
};

extern const struct varlink_parameter control_submit_table[];

/*
 * Returns the accepted job. NULL = an error has been sent, or the request waits for room in the
 * queue and will be executed again.
 */
struct job *control_submit(struct request *request, const struct control_submit_options *options);
