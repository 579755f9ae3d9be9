/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The kinds of rows that an upgrade hands over: who saves them, and when they are restored. A new
 * supervisor takes over workers, jobs and clients one after the other, hence the stages.
 */

#include "supervisor/succession/record.h"
#include "supervisor/upgrade/saved-file.h"

struct group_context;
struct message_context;

enum upgrade_stage {
    UPGRADE_REFERENCES, /* there is no actor yet */
    UPGRADE_GROUPS,     /* groups exist, and have not been resumed */
    UPGRADE_JOBS,       /* groups and workers have been resumed, and there is no other job yet */
    UPGRADE_MESSAGES,   /* all actors of the last supervisor are there, and the loop has not run */
};

/* Restores what belongs to the stage. Rows that are damaged are dropped, and counted in the log. */
void upgrade_restore(enum upgrade_stage stage, const struct group_context *context,
                     const struct saved_file *file);

/* Saves actors and all that belongs to one. */
void upgrade_save_actors(const struct message_context *context, struct saver *saver);

/* Returns a digest of the tables of all records, and of the versions of what no table describes:
 * one program can take over from another only if both have the same. */
uint64_t upgrade_layout(void);
/* The records of that digest, from 0; NULL at the end. */
const struct record *upgrade_record(size_t i);
