/* SPDX-License-Identifier: MIT */
#pragma once

/* What records of type Wait in troupe-varlink(7) say about a group or a job, as far as it decides
 * whether this machine gives messages back. */

#include <stdbool.h>

struct obstacles {
    bool closed;    /* new jobs are refused */
    bool draining;  /* new jobs are refused, and the queue is worked off */
    bool busy;      /* all workers are busy, and will take jobs from the queue */
    bool down;      /* no job begins until an administrator acts */
    bool absent;    /* no worker is up */
    bool coming;    /* a worker will be up without help */
    char cause[32]; /* the first important one, for messages */
};

/* clang-format off */
#define OBSTACLES_NULL {.cause = ""}
/* clang-format on */

/* `cause` of a record; may be NULL. */
void obstacles_note(struct obstacles *obstacles, const char *cause);

/* Returns whether a waiting job will not be done here. */
bool obstacles_are_lasting(const struct obstacles *obstacles);
/* Returns whether a new job will not be done here. */
bool obstacles_to_new_jobs(const struct obstacles *obstacles);
