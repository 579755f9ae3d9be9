/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * "wait": answering a call only when the change it asked for is complete.
 */

#include "supervisor/varlink/request.h"

enum control_goal {
    CONTROL_GOAL_UP,   /* every worker of the target is ready */
    CONTROL_GOAL_DOWN, /* stopped */
    CONTROL_GOAL_SIZE, /* the pool has its new size, new workers are ready, surplus ones gone */
};

struct control_wait_options {
    enum control_goal goal;
    const char *target;
    size_t old_size, new_size; /* CONTROL_GOAL_SIZE */
};

/*
 * Ends the request when the goal is reached, or with NotReached when it no longer can be: a worker
 * has failed, or somebody asked for something else meanwhile. What is under way is not touched if
 * the client goes away.
 */
void control_wait(struct request *request, const struct control_wait_options *options);
