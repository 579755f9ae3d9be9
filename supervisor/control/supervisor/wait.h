/* SPDX-License-Identifier: MIT */
#pragma once

/* Implements "wait": the reply comes when the change is complete. */

#include "supervisor/varlink/request.h"

enum control_goal {
    CONTROL_GOAL_UP,      /* every worker of the target is ready */
    CONTROL_GOAL_DOWN,    /* stopped */
    CONTROL_GOAL_DRAINED, /* no job of the group runs */
    CONTROL_GOAL_SIZE,    /* the pool has its new size, new workers are ready, surplus ones gone */
};

struct control_wait_options {
    enum control_goal goal;
    const char *target;
    size_t old_size, new_size; /* CONTROL_GOAL_SIZE */
};

/*
 * Ends the request when the goal is reached, or with NotReached when it no longer can be: a worker
 * failed, or another call changed the target. The change goes on if the client disconnects.
 */
void control_wait(struct request *request, const struct control_wait_options *options);
