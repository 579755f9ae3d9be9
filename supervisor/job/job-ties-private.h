/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between job-ties.c and job-ties-restore.c. */

#include "supervisor/job/job-ties.h"

/* Makes ties without a job. `id` is copied. Returns NULL without memory. */
struct job_ties *ties_new(struct job_table *table, struct tie_key key, const char *id);
/* Frees the ties if neither a job nor an edge needs them. */
void ties_release(struct job_table *table, struct job_ties *ties);
/* Something about the ties is to be decided. */
void ties_due(struct job_table *table, struct job_ties *ties);
/* Adds an edge to ties that have room for it: n_edges is below what was allocated. */
void ties_link(struct job_ties *child, struct job_ties *parent, enum tie_condition condition);
/* Joins the batch. */
void ties_join(struct job_ties *ties, struct job_ties *batch);
/* Frees the edges to its parents, which are uncounted. */
void ties_drop_edges(struct job_table *table, struct job_ties *ties);
/* The edges of a child wait and count no more. `tell`: calls unneeded(). */
void ties_uncount(struct job_table *table, struct job_ties *ties, bool tell);
