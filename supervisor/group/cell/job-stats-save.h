/* SPDX-License-Identifier: MIT */
#pragma once

/* Statistics of jobs across an upgrade: those that began with the group, not those of now. */

#include "supervisor/group/cell/job-stats.h"
#include "supervisor/succession/saved-row.h"

/* Appends both to a row. */
void job_stats_put(struct saved_writer *row, const struct job_counts *counts,
                   const struct job_history *history);
/* Adds to the counts, but not to those of the parent, and replaces the history. */
void job_stats_get(struct saved_reader *row, struct job_counts *counts,
                   struct job_history *history);
