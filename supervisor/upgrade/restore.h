/* SPDX-License-Identifier: MIT */
#pragma once

/* Brings back what upgrade/save.h has saved, in stages: a new supervisor takes over workers, jobs
 * and clients one after the other. */

#include "supervisor/store/database.h"

struct group_context;

enum upgrade_stage {
    UPGRADE_REFERENCES, /* there is no actor yet */
    UPGRADE_GROUPS,     /* groups exist, and have not been resumed */
    UPGRADE_JOBS,       /* groups and workers have been resumed, and there is no other job yet */
    UPGRADE_MESSAGES,   /* all actors of the last supervisor are there, and the loop has not run */
};

/* Restores what belongs to the stage. Rows that are damaged are dropped, and counted in the log.
 * Returns 0 or -errno of the database. */
int upgrade_restore(enum upgrade_stage stage, const struct group_context *context,
                    struct database *database);
