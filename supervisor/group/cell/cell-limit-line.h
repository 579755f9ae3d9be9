/* SPDX-License-Identifier: MIT */
#pragma once

/* The lines of a group's keys: internal interface of cell-limit.c. */

#include "supervisor/group/cell/cell-limit.h"

/* Makes the lines of `limits`, none yet. Cannot fail; limit_lines_deinit() follows, and frees them.
 */
void limit_lines_init(struct limits *limits);
void limit_lines_deinit(struct limits *limits);
/* Looks at all lines, in later turns. */
void limit_lines_review(struct limits *limits);

/* See limits_begin() and limits_end(). */
int limit_lines_begin(struct limits *limits, struct job *job, bool counts);
void limit_lines_end(struct limits *limits, struct job *job, bool counted);
/* Copies the bounds and the level of the job's key; without a key there are none. */
void limit_lines_look(const struct limits *limits, const struct job *job, struct limit_line *ret);
