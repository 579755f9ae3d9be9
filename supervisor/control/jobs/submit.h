/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Create and Do: the parameters of a new job, checked and accepted.
 */

#include "supervisor/job/job.h"
#include "supervisor/varlink/request.h"

#define CONTROL_KEY_ALLOWED "in a group with Cells=by-key " PROTOCOL_NAME_ALLOWED

struct control_submit_options {
    bool keep_result;
    /* As in cell_submit(); NULL = nobody waits. */
    void (*changed)(struct job_waiter *waiter, struct job *job);
    void *owner;
};

/*
 * The accepted job, or NULL: then the request has been answered with the reason, or waits for room
 * in the queue and will be called again.
 */
struct job *control_submit(struct request *request, const struct control_submit_options *options);
