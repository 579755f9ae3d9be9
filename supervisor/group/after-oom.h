/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds the place in which a job whose worker ran out of memory is tried again. */

struct cell;
struct job;
struct registry;

/* Returns the cell of the job's key in the group that the OnOom= of its own group names. It may be
 * new. NULL = there is no such group any more, or it takes no jobs now. */
struct cell *after_oom_find(struct registry *registry, const struct job *job);
